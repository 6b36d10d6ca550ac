// A Go program whose compactions a pool does, over RocksDB's C interface:
//
//	fill DIRECTORY CONFIGURATION KIND
//
// KIND is plain, or merge: with a merge operator. It writes, replaces and deletes keys, compacts,
// compares all of them with a copy, and says how many bytes the pool has read.
package main

// #cgo LDFLAGS: -lmanxdb_compaction -lrocksdb
// #include <manxdb_compaction.h>
// #include <rocksdb/c.h>
// #include <stdlib.h>
import "C"

import (
	"fmt"
	"log"
	"math/rand"
	"os"
	"regexp"
	"sort"
	"strings"
	"unsafe"
)

const rounds = 30

// need ends the program when RocksDB or the library says that something is wrong.
func need(why *C.char) {
	if why != nil {
		log.Fatal(C.GoString(why))
	}
}

// The three lines that a program needs: before the database is opened with these options.
func compactElsewhere(options *C.rocksdb_options_t, configuration string) {
	var why *C.char
	settings := C.CString(configuration)
	defer C.free(unsafe.Pointer(settings))
	service := C.manxdb_compaction_service(settings, &why)
	need(why)
	C.rocksdb_options_set_compaction_service(options, service)
}

func optionsFor(kind, configuration string) *C.rocksdb_options_t {
	options := C.rocksdb_options_create()
	C.rocksdb_options_set_create_if_missing(options, 1)
	C.rocksdb_options_set_write_buffer_size(options, 256<<10)
	C.rocksdb_options_set_target_file_size_base(options, 128<<10)
	C.rocksdb_options_set_max_bytes_for_level_base(options, 1<<20)
	C.rocksdb_options_enable_statistics(options)
	if kind == "merge" {
		C.rocksdb_options_set_uint64add_merge_operator(options)
	}
	compactElsewhere(options, configuration)
	return options
}

func open(options *C.rocksdb_options_t, directory string) *C.rocksdb_t {
	var why *C.char
	place := C.CString(directory)
	defer C.free(unsafe.Pointer(place))
	db := C.rocksdb_open(options, place, &why)
	need(why)
	return db
}

// chars lends a text that is not empty to C for one call.
func chars(text string) (*C.char, C.size_t) {
	return (*C.char)(unsafe.Pointer(unsafe.StringData(text))), C.size_t(len(text))
}

func fill(db *C.rocksdb_t) map[string]string {
	how := C.rocksdb_writeoptions_create()
	defer C.rocksdb_writeoptions_destroy(how)
	random := rand.New(rand.NewSource(7))
	written := map[string]string{}
	for i := range rounds * 2000 {
		var why *C.char
		one := fmt.Sprint(random.Intn(20000))
		key, keyBytes := chars(one)
		if i%7 == 0 {
			C.rocksdb_delete(db, how, key, keyBytes, &why)
			delete(written, one)
		} else {
			written[one] = fmt.Sprint(random.Int31()) + strings.Repeat("v", 200)
			value, valueBytes := chars(written[one])
			C.rocksdb_put(db, how, key, keyBytes, value, valueBytes, &why)
		}
		need(why)
	}
	C.rocksdb_compact_range(db, nil, 0, nil, 0)
	return written
}

// compare reads all keys, in their order.
func compare(db *C.rocksdb_t, written map[string]string) {
	keys := make([]string, 0, len(written))
	for key := range written {
		keys = append(keys, key)
	}
	sort.Strings(keys)
	how := C.rocksdb_readoptions_create()
	defer C.rocksdb_readoptions_destroy(how)
	found := C.rocksdb_create_iterator(db, how)
	defer C.rocksdb_iter_destroy(found)
	var length C.size_t
	C.rocksdb_iter_seek_to_first(found)
	for _, key := range keys {
		if C.rocksdb_iter_valid(found) == 0 {
			log.Fatalf("%s is missing", key)
		}
		there := C.rocksdb_iter_key(found, &length)
		if C.GoStringN(there, C.int(length)) != key {
			log.Fatalf("%s is not in its place", key)
		}
		there = C.rocksdb_iter_value(found, &length)
		if C.GoStringN(there, C.int(length)) != written[key] {
			log.Fatalf("%s has another value", key)
		}
		C.rocksdb_iter_next(found)
	}
	if C.rocksdb_iter_valid(found) != 0 {
		log.Fatal("there are more keys at the end")
	}
	var why *C.char
	C.rocksdb_iter_get_error(found, &why)
	need(why)
}

// bytesByPool is what RocksDB counts of the inputs of compactions that were done elsewhere.
func bytesByPool(options *C.rocksdb_options_t) string {
	text := C.rocksdb_options_statistics_get_string(options)
	defer C.rocksdb_free(unsafe.Pointer(text))
	count := regexp.MustCompile(`rocksdb\.remote\.compact\.read\.bytes COUNT : (\d+)`)
	found := count.FindStringSubmatch(C.GoString(text))
	if found == nil {
		log.Fatal("RocksDB does not count what is compacted elsewhere")
	}
	return found[1]
}

func main() {
	log.SetFlags(0)
	if len(os.Args) != 4 {
		log.Fatal("fill DIRECTORY CONFIGURATION KIND")
	}
	options := optionsFor(os.Args[3], os.Args[2])
	db := open(options, os.Args[1])
	written := fill(db)
	compare(db, written)
	C.rocksdb_close(db)
	fmt.Printf("pool %s bytes all %d keys are right\n", bytesByPool(options), len(written))
	C.rocksdb_options_destroy(options)
}
