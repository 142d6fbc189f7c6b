// The driver of River (Go): setup, enqueue, feed, hold, worker. Events are JSON lines on standard output.
//
// Invariants: the same jobs as for every peer. Never: look at River's tables, which is the orchestrator's part.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

func pool(ctx context.Context, connections int) *pgxpool.Pool {
	config, err := pgxpool.ParseConfig(os.Getenv("DATABASE_URL"))
	must(err)
	config.MaxConns = int32(connections)
	made, err := pgxpool.NewWithConfig(ctx, config)
	must(err)
	return made
}

// config gives the settings of a mode. Inserting clients take them too: FetchCooldown is also the least time between two
// NOTIFYs of one inserting client.
func config() *river.Config {
	level := slog.LevelError
	if args.Log {
		level = slog.LevelWarn // its default
	}
	made := &river.Config{Logger: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level}))}
	made.FetchCooldown, made.FetchPollInterval = river.FetchCooldownMin, 20*time.Millisecond
	if args.Mode == "fast" {
		// It counts from the attempt's start and may not be less than JobTimeout: 5 s for a job of 3 s.
		made.JobTimeout, made.RescueStuckJobsAfter = 5*time.Second, 5*time.Second
	}
	return made
}

// inserter is a client without queues.
func inserter(ctx context.Context) *river.Client[pgx.Tx] {
	client, err := river.NewClient(riverpgxv5.New(pool(ctx, 4)), config())
	must(err)
	return client
}

func setup(ctx context.Context) {
	migrator, err := rivermigrate.New(riverpgxv5.New(pool(ctx, 4)), nil)
	must(err)
	_, err = migrator.Migrate(ctx, rivermigrate.DirectionUp, nil)
	must(err)
}

func enqueue(ctx context.Context) {
	client := inserter(ctx)
	started := now()
	for from := 0; from < args.N; from += args.Chunk {
		jobs := make([]river.InsertManyParams, 0, args.Chunk)
		for i := from; i < min(from+args.Chunk, args.N); i++ {
			jobs = append(jobs, river.InsertManyParams{Args: noop{i}})
		}
		_, err := client.InsertManyFast(ctx, jobs) // by COPY
		must(err)
	}
	emit(event{"ev": "enqueued", "t0": started, "t1": now()})
}

func feed(ctx context.Context) {
	client := inserter(ctx)
	_, err := client.Insert(ctx, lat{-1}, nil)
	must(err)
	time.Sleep(500 * time.Millisecond)
	for seq := range args.N {
		started := now()
		_, err := client.Insert(ctx, lat{seq}, nil)
		must(err)
		emit(event{"ev": "sent", "seq": seq, "t0": started, "t1": now()})
		time.Sleep(time.Duration(args.Ms) * time.Millisecond)
	}
}

func work(ctx context.Context) {
	workers := river.NewWorkers()
	river.AddWorker(workers, &noopWorker{})
	river.AddWorker(workers, &latWorker{})
	river.AddWorker(workers, &holdWorker{effects: pool(ctx, 2)})
	made := config()
	made.Queues = map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: args.C}}
	made.Workers = workers
	client, err := river.NewClient(riverpgxv5.New(pool(ctx, min(args.C, 64)+4)), made)
	must(err)
	must(client.Start(ctx))
	emit(event{"ev": "ready", "t": now()})
	// A line, or the end of the orchestrator.
	_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
	stop, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	must(client.Stop(stop))
	emit(event{"ev": "end", "calls": calls.Load()})
}

func main() {
	if len(os.Args) > 2 {
		must(json.Unmarshal([]byte(os.Args[2]), &args))
	}
	ctx := context.Background()
	switch command := os.Args[1]; command {
	case "setup":
		setup(ctx)
	case "enqueue":
		enqueue(ctx)
	case "feed":
		feed(ctx)
	case "hold":
		_, err := inserter(ctx).Insert(ctx, hold{}, nil)
		must(err)
	case "worker":
		work(ctx)
	default:
		panic("unknown command " + command + ": setup, enqueue, feed, hold or worker")
	}
}
