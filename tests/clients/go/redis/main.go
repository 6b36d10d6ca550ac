// go-redis on the Redis server.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"time"

	"github.com/redis/go-redis/v9"
)

// same fails with what was found.
func same(what string, found, wanted any) {
	if !reflect.DeepEqual(found, wanted) {
		panic(fmt.Sprintf("%s: %v, not %v", what, found, wanted))
	}
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err.Error())
	}
	return value
}

func day(protocol int) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	link := redis.NewClient(&redis.Options{
		Addr: "127.0.0.1:" + os.Getenv("MANXDB_TEST_REDIS_PORT"), DB: 11, Protocol: protocol,
	})
	defer link.Close()
	must(link.FlushDB(ctx).Result())
	pipe := link.TxPipeline()
	pipe.Set(ctx, "a", 1, time.Minute)
	count := pipe.Incr(ctx, "a")
	must(pipe.Exec(ctx))
	same("INCR", count.Val(), int64(2))
	must(link.HSet(ctx, "h", map[string]any{"x": 1, "y": "z"}).Result())
	same("HGETALL", must(link.HGetAll(ctx, "h").Result()), map[string]string{"x": "1", "y": "z"})
	must(link.ZAdd(ctx, "z", redis.Z{Score: 1.5, Member: "m"}).Result())
	same("ZRANGE", must(link.ZRangeWithScores(ctx, "z", 0, -1).Result()), []redis.Z{{Score: 1.5, Member: "m"}})
	script := redis.NewScript("return {KEYS[1], redis.call('incrby', KEYS[1], ARGV[1])}")
	same("a script", must(script.Run(ctx, link, []string{"a"}, 40).Result()), []any{"a", int64(42)})
	if _, err := link.Get(ctx, "none").Result(); !errors.Is(err, redis.Nil) {
		panic(fmt.Sprintf("GET of nothing: %v", err))
	}
	err := link.Watch(ctx, func(tx *redis.Tx) error {
		value := must(tx.Get(ctx, "a").Int())
		_, err := tx.TxPipelined(ctx, func(pipe redis.Pipeliner) error {
			pipe.Set(ctx, "a", value+1, 0)
			return nil
		})
		return err
	}, "a")
	same("WATCH", err, nil)
	messages := link.Subscribe(ctx, "news")
	defer messages.Close()
	must(messages.Receive(ctx))
	must(link.Publish(ctx, "news", "hello").Result())
	same("a message", must(messages.ReceiveMessage(ctx)).Payload, "hello")
	must(link.XAdd(ctx, &redis.XAddArgs{Stream: "s", ID: "1-1", Values: []string{"f", "v"}}).Result())
	same("XRANGE", must(link.XRange(ctx, "s", "-", "+").Result()), []redis.XMessage{{ID: "1-1", Values: map[string]any{"f": "v"}}})
}

func main() {
	failed := 0
	for _, protocol := range []int{2, 3} {
		name := fmt.Sprintf("redis: go-redis, RESP %d", protocol)
		func() {
			defer func() {
				if problem := recover(); problem != nil {
					failed++
					fmt.Printf("FAIL %s: %v\n", name, problem)
				} else {
					fmt.Printf("PASS %s\n", name)
				}
			}()
			day(protocol)
		}()
	}
	if failed > 0 {
		os.Exit(1)
	}
}
