// What a driver is asked for and what it does with each of the three jobs: one that does nothing, one that tells when it
// started, one that works for a while.
package main

import (
	"context"
	"encoding/json"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"golang.org/x/sys/unix"
)

// Arguments are the second word of the command line, in JSON.
type Arguments struct {
	N      int    `json:"n"`
	C      int    `json:"c"`
	Chunk  int    `json:"chunk"`
	Ms     int    `json:"ms"`
	HoldMs int    `json:"hold_ms"`
	Name   string `json:"name"`
	Mode   string `json:"mode"`
	Log    bool   `json:"log"`
}

var args = Arguments{C: 10, Chunk: 1000, Ms: 50, Name: "w"}

// now reads CLOCK_MONOTONIC, which is one clock for all processes of the machine.
func now() int64 {
	var at unix.Timespec
	must(unix.ClockGettime(unix.CLOCK_MONOTONIC, &at))
	return at.Nano()
}

type event map[string]any

var out sync.Mutex

func emit(e event) {
	line, err := json.Marshal(e)
	must(err)
	out.Lock()
	defer out.Unlock()
	// Who does not read any more has ended, and so will this process.
	_, _ = os.Stdout.Write(append(line, '\n'))
}

// must ends the process: the orchestrator shows what it said.
func must(err error) {
	if err != nil {
		panic(err)
	}
}

type noop struct {
	I int `json:"i"`
}
type lat struct {
	Seq int `json:"seq"`
}
type hold struct{}

func (noop) Kind() string { return "noop" }
func (lat) Kind() string  { return "lat" }
func (hold) Kind() string { return "hold" }

var calls atomic.Int64

type noopWorker struct{ river.WorkerDefaults[noop] }

func (*noopWorker) Work(context.Context, *river.Job[noop]) error {
	count := calls.Add(1)
	if count == 1 {
		emit(event{"ev": "first", "t": now()})
	}
	if count == int64(args.N) {
		emit(event{"ev": "last", "t": now()})
	}
	return nil
}

type latWorker struct{ river.WorkerDefaults[lat] }

func (*latWorker) Work(_ context.Context, job *river.Job[lat]) error {
	emit(event{"ev": "lat", "seq": job.Args.Seq, "t": now()})
	return nil
}

type holdWorker struct {
	river.WorkerDefaults[hold]
	effects *pgxpool.Pool
}

// NextRetry: a rescued job goes through the retry policy, by default attempt^4 seconds.
func (*holdWorker) NextRetry(*river.Job[hold]) time.Time {
	if args.Mode == "fast" {
		return time.Now()
	}
	return time.Time{}
}

// Work goes on whatever the engine says of its context, as in the other drivers.
func (w *holdWorker) Work(_ context.Context, job *river.Job[hold]) error {
	leave := func(what string) error {
		_, err := w.effects.Exec(context.Background(),
			"INSERT INTO bench_effects (worker, attempt, what) VALUES ($1, $2, $3)", args.Name, job.Attempt, what)
		return err
	}
	emit(event{"ev": "start", "t": now(), "attempt": job.Attempt})
	if err := leave("begin"); err != nil {
		return err
	}
	time.Sleep(time.Duration(args.HoldMs) * time.Millisecond)
	if err := leave("end"); err != nil {
		return err
	}
	emit(event{"ev": "handler_done", "t": now()})
	return nil
}
