/* Makes a service in C: `service CONFIGURATION`. */
#include <manxdb_compaction.h>
#include <stdio.h>
#include <stdlib.h>

#ifndef NO_ROCKSDB
#include <rocksdb/c.h>
#endif

int main(int count, char **arguments) {
  char *error = NULL;
  rocksdb_compactionservice_t *service =
      manxdb_compaction_service(count > 1 ? arguments[1] : NULL, &error);
  if (service == NULL) {
    printf("%s\n", error);
    free(error);
    return 0;
  }
#ifndef NO_ROCKSDB
  rocksdb_options_t *options = rocksdb_options_create();
  rocksdb_options_set_compaction_service(options, service);
  rocksdb_options_destroy(options);
#endif
  printf("a service\n");
  return 0;
}
