// A program with a RocksDB of its own whose compactions a pool does: writes, replaces and deletes
// keys, compacts, and compares all of them with a copy in memory.
//
//     fill DIRECTORY CONFIGURATION KIND ROUNDS
//
// KIND is `plain`, or what the program brings along: `shape` (tables and prefixes of another shape),
// `families`, `merge`, `filter`, `blobs`. ROUNDS is a number, or `-`: until a line comes in. After
// each round it says how many compactions were done where, and at the end whether all is right.

#include <manxdb_compaction.h>
#include <rocksdb/compaction_filter.h>
#include <rocksdb/db.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/listener.h>
#include <rocksdb/merge_operator.h>
#include <rocksdb/slice_transform.h>
#include <rocksdb/table.h>

#include <atomic>
#include <iostream>
#include <map>
#include <random>
#include <thread>

using Copy = std::map<std::string, std::string>;

void need(bool holds, const std::string &what) {
  if (!holds) {
    std::cout << "WRONG: " << what << std::endl;
    std::_Exit(1);
  }
}

void need(const rocksdb::Status &status) { need(status.ok(), status.ToString()); }

// RocksDB itself says where a compaction was done.
struct Counter : rocksdb::EventListener {
  std::atomic<int> pool{0}, here{0};
  void OnCompactionCompleted(rocksdb::DB *, const rocksdb::CompactionJobInfo &info) override {
    need(info.status);
    (info.stats.is_remote_compaction ? pool : here)++;
  }
  void OnBackgroundError(rocksdb::BackgroundErrorReason, rocksdb::Status *status) override {
    need(*status);
  }
};

struct Append : rocksdb::AssociativeMergeOperator {
  const char *Name() const override { return "example.append"; }
  bool Merge(const rocksdb::Slice &, const rocksdb::Slice *old, const rocksdb::Slice &value,
             std::string *result, rocksdb::Logger *) const override {
    *result = (old == nullptr ? "" : old->ToString()) + value.ToString();
    return true;
  }
};

// Keys that begin with 9 go.
struct Nines : rocksdb::CompactionFilter {
  const char *Name() const override { return "example.nines"; }
  bool Filter(int, const rocksdb::Slice &key, const rocksdb::Slice &, std::string *,
              bool *) const override {
    return key.starts_with("9");
  }
};

rocksdb::Options options_for(const std::string &kind) {
  rocksdb::Options options;
  options.create_if_missing = options.create_missing_column_families = true;
  options.write_buffer_size = 256 << 10;
  options.target_file_size_base = 128 << 10;
  options.max_bytes_for_level_base = 1 << 20;
  options.max_background_jobs = 4;
  options.compression = rocksdb::kLZ4Compression;
  if (kind == "shape") {
    rocksdb::BlockBasedTableOptions tables;
    tables.filter_policy.reset(rocksdb::NewBloomFilterPolicy(12));
    tables.block_size = 16 << 10;
    tables.index_type = rocksdb::BlockBasedTableOptions::kTwoLevelIndexSearch;
    tables.partition_filters = true;
    options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(tables));
    options.prefix_extractor.reset(rocksdb::NewFixedPrefixTransform(3));
  } else if (kind == "merge") {
    options.merge_operator = std::make_shared<Append>();
  } else if (kind == "filter") {
    static Nines nines;
    options.compaction_filter = &nines;
  } else if (kind == "blobs") {
    options.enable_blob_files = true;
  }
  return options;
}

struct Program {
  std::string kind;
  std::unique_ptr<rocksdb::DB> db;
  std::vector<rocksdb::ColumnFamilyHandle *> families;
  std::vector<Copy> copies;
  std::mt19937 random{7};

  void open(const rocksdb::Options &options, const std::string &directory) {
    std::vector<rocksdb::ColumnFamilyDescriptor> wanted{{"default", options}};
    if (kind == "families") wanted.emplace_back("other", options);
    need(rocksdb::DB::Open(options, directory, wanted, &families, &db));
    copies.resize(families.size());
  }

  std::string key() { return std::to_string(random() % 20000); }

  void write() {
    rocksdb::WriteOptions how;
    for (int i = 0; i < 2000; i++) {
      auto place = random() % families.size();
      auto *family = families[place];
      auto &copy = copies[place];
      auto one = key(), value = std::to_string(random()) + std::string(200, 'v');
      if (i % 7 == 0) {
        need(db->Delete(how, family, one));
        copy.erase(one);
      } else if (i % 501 == 0) {
        auto end = one + "5";
        need(db->DeleteRange(how, family, one, end));
        copy.erase(copy.lower_bound(one), copy.lower_bound(end));
      } else if (kind == "merge") {
        need(db->Merge(how, family, one, value.substr(0, 20)));
        copy[one] += value.substr(0, 20);
      } else {
        need(db->Put(how, family, one, value));
        copy[one] = value;
      }
    }
  }

  void compact() {
    rocksdb::CompactRangeOptions how;
    how.bottommost_level_compaction = rocksdb::BottommostLevelCompaction::kForce;
    for (auto *family : families) need(db->CompactRange(how, family, nullptr, nullptr));
  }

  // All keys, in their order, and the shape of all files.
  size_t compare() {
    size_t keys = 0;
    for (size_t place = 0; place < families.size(); place++) {
      auto copy = copies[place];
      if (kind == "filter") copy.erase(copy.lower_bound("9"), copy.end());
      rocksdb::ReadOptions how;
      how.total_order_seek = true;
      std::unique_ptr<rocksdb::Iterator> found(db->NewIterator(how, families[place]));
      auto expected = copy.begin();
      for (found->SeekToFirst(); found->Valid(); found->Next(), ++expected, keys++) {
        need(expected != copy.end(), found->key().ToString() + " should not be there");
        need(found->key() == expected->first, expected->first + " is missing");
        need(found->value() == expected->second, expected->first + " has another value");
      }
      need(found->status());
      need(expected == copy.end(), "keys are missing at the end");
      look(families[place]);
    }
    need(db->VerifyChecksum());
    return keys;
  }

  void look(rocksdb::ColumnFamilyHandle *family) {
    rocksdb::TablePropertiesCollection files;
    need(db->GetPropertiesOfAllTables(family, &files));
    for (auto &[name, file] : files) {
      bool is_shaped = file->filter_policy_name != "" && file->filter_size > 0 &&
                       file->index_partitions > 0 && file->prefix_extractor_name != "nullptr";
      need(is_shaped == (kind == "shape"), name + " is of another shape");
    }
  }
};

int main(int count, char **arguments) {
  need(count == 5, "fill DIRECTORY CONFIGURATION KIND ROUNDS");
  std::string directory = arguments[1], rounds = arguments[4];
  Program program;
  program.kind = arguments[3];
  auto counter = std::make_shared<Counter>();
  auto options = options_for(program.kind);
  options.listeners.push_back(counter);
  options.compaction_service = manxdb::CompactionService(arguments[2]);
  program.open(options, directory);

  std::atomic<bool> is_over{false};
  if (rounds == "-") {
    std::thread([&] {
      std::string line;
      std::getline(std::cin, line);
      is_over = true;
    }).detach();
  }
  for (int round = 1; !is_over && (rounds == "-" || round <= std::stoi(rounds)); round++) {
    program.write();
    std::cout << "pool " << counter->pool << " here " << counter->here << std::endl;
  }
  program.compact();
  auto keys = program.compare();
  for (auto *family : program.families) need(program.db->DestroyColumnFamilyHandle(family));
  need(program.db->Close());
  std::cout << "pool " << counter->pool << " here " << counter->here << " all " << keys
            << " keys are right" << std::endl;
}
