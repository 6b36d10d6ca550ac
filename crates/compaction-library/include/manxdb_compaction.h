/* Compactions of RocksDB 11.8 by a pool of ManxDB's workers: libmanxdb_compaction.so.
 *
 * C, and languages that call C: the service is put into options before a database is opened with
 * them. The options own it from then on.
 *
 *     char *error = NULL;
 *     rocksdb_compactionservice_t *service = manxdb_compaction_service("/etc/pool.toml", &error);
 *     if (service == NULL) { fprintf(stderr, "%s\n", error); free(error); }
 *     else rocksdb_options_set_compaction_service(options, service);
 *
 * C++: a rocksdb_compactionservice_t has rocksdb::CompactionService as its first and only base.
 *
 *     options.compaction_service = manxdb::CompactionService("/etc/pool.toml");
 *
 * One service may serve many databases, opened one after the other or at the same time. Make it when
 * the program has forked for the last time. What is handed out and what is not: docs/compaction.md.
 */
#ifndef MANXDB_COMPACTION_H
#define MANXDB_COMPACTION_H

#ifdef __cplusplus
extern "C" {
#endif

/* As in rocksdb/c.h. */
typedef struct rocksdb_compactionservice_t rocksdb_compactionservice_t;

/* Makes a service. `configuration` is TOML, or, when it begins with '/' or '.', the path of a file
 * with it:
 *
 *     control = ["db1:7411"]                  # control planes, tried in turn
 *     compaction_volume = "fast=/mnt/fast"    # NAME=PLACE that workers reach too; databases lie in it
 *     compaction_token_file = "/etc/token"    # the pool's secret (none)
 *     compaction_min_mb = 4                   # smaller compactions are done here (4)
 *     compaction_zone = 0                     # where this machine is (0)
 *     compaction_tls_ca, _cert, _key, _name   # certificates, in place of a token or beside it (none)
 *     compaction_one_path = true              # neither db_paths nor cf_paths are set (false)
 *     compaction_metrics = "127.0.0.1:9103"   # where Prometheus finds numbers (nowhere)
 *     compaction_log = "/var/log/pool.log"    # where the log goes (standard error)
 *     compaction_log_level = "info"           # and how much of it (info)
 *
 * Answers NULL when something is wrong with it, or with the RocksDB of the program; then *error, if
 * `error` is not NULL, says what, to be freed with free(). Else *error is NULL. Whether the pool is
 * there shows later: a program works without. Any thread may call it. */
rocksdb_compactionservice_t *manxdb_compaction_service(const char *configuration, char **error);

#ifdef __cplusplus
}

#if __has_include(<rocksdb/options.h>)
#include <rocksdb/options.h>
#include <rocksdb/version.h>

#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>

#if ROCKSDB_MAJOR != 11 || ROCKSDB_MINOR != 8
#error "libmanxdb_compaction.so is for RocksDB 11.8"
#endif

namespace manxdb {

/* The same for rocksdb::DBOptions::compaction_service; throws std::invalid_argument. */
inline std::shared_ptr<rocksdb::CompactionService> CompactionService(
    const std::string &configuration) {
  char *error = nullptr;
  auto *service = manxdb_compaction_service(configuration.c_str(), &error);
  if (service == nullptr) {
    std::string why = error == nullptr ? "out of memory" : error;
    std::free(error);
    throw std::invalid_argument("manxdb: " + why);
  }
  return std::shared_ptr<rocksdb::CompactionService>(
      reinterpret_cast<rocksdb::CompactionService *>(service));
}

}  // namespace manxdb
#endif
#endif

#endif
