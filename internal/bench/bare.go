package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// bareLoop claims and settles n files by bare system calls from several
// goroutines: rename, write and flush a record, rename, rename, flush the
// folder, unlink.
func bareLoop(dir string, body []byte, n, slots int) (float64, error) {
	var fds [3]int
	for i, d := range []string{"pending", "d", "done"} {
		fd, err := unix.Open(filepath.Join(dir, d), unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			return 0, err
		}
		defer unix.Close(fd)
		fds[i] = fd
	}
	pending, d, done := fds[0], fds[1], fds[2]
	one := func(name string) error {
		if err := unix.Renameat(pending, name, d, name); err != nil {
			return err
		}
		fd, err := unix.Openat(d, name+".out", unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_CLOEXEC, 0o600)
		if err != nil {
			return err
		}
		_, err = unix.Write(fd, body)
		if err == nil {
			err = unix.Fdatasync(fd)
		}
		if cerr := unix.Close(fd); err == nil {
			err = cerr
		}
		if err == nil {
			err = unix.Renameat(d, name, d, name+".taken")
		}
		if err == nil {
			err = unix.Renameat2(d, name+".out", done, name, unix.RENAME_NOREPLACE)
		}
		if err == nil {
			err = unix.Fsync(done)
		}
		if err == nil {
			err = unix.Unlinkat(d, name+".taken", 0)
		}
		return err
	}
	var mu sync.Mutex
	var first error
	next := 0
	begun := time.Now()
	var wg sync.WaitGroup
	for range slots {
		wg.Go(func() {
			for {
				mu.Lock()
				i := next
				next++
				stop := first != nil
				mu.Unlock()
				if i >= n || stop {
					return
				}
				if err := one(fmt.Sprint(i)); err != nil {
					mu.Lock()
					first = err
					mu.Unlock()
					return
				}
			}
		})
	}
	wg.Wait()
	return time.Since(begun).Seconds() / float64(n), first
}

// answerLines is a handler that stays and does nothing.
func answerLines() {
	in := bufio.NewReaderSize(os.Stdin, 1<<20)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return
		}
		var t struct {
			ID string `json:"task_id"`
		}
		if err := json.Unmarshal(line, &t); err != nil {
			fatal(err)
		}
		fmt.Printf("{\"task_id\":%q,\"exit\":0}\n", t.ID)
	}
}
