package spool

import (
	"errors"
	"fmt"
	"io/fs"

	"beeyard"
	"beeyard/internal/durable"
	"beeyard/internal/strict"
)

// readTask reads dir/name as the body of the task id. Errors: fs.ErrNotExist;
// beeyard.ErrNotTask when it is no task (the caller quarantines it);
// fs.ErrPermission for another user's file (skipped with a warning, never
// quarantined); anything else is the disk's.
func readTask(dir durable.Dir, name, id string) (*beeyard.Task, durable.Info, error) {
	data, info, err := readBody(dir, name)
	if err != nil {
		return nil, info, err
	}
	t, err := parseTask(data, id)
	return t, info, err
}

// readBody reads the bytes of a body, with the errors of readTask.
func readBody(dir durable.Dir, name string) ([]byte, durable.Info, error) {
	data, info, err := dir.ReadFile(name, beeyard.MaxTaskBytes)
	switch {
	case errors.Is(err, durable.ErrNotRegular):
		err = beeyard.Because(beeyard.ErrNotTask, "it is not a regular file")
	case errors.Is(err, durable.ErrTooLarge):
		err = beeyard.Because(beeyard.ErrNotTask, "it is larger than 16 MiB")
	case err != nil:
		err = fmt.Errorf("read task: %w", err)
	}
	return data, info, err
}

// parseTask reads a body and checks that it is the one its name says: a file
// whose inner id differs from its name is never followed.
func parseTask(data []byte, id string) (*beeyard.Task, error) {
	if err := strict.Check(data, strict.Options{MaxBytes: beeyard.MaxTaskBytes}); err != nil {
		return nil, beeyard.Because(beeyard.ErrNotTask, err.Error())
	}
	t, err := beeyard.DecodeTask(data)
	if err != nil {
		return nil, err
	}
	if t.ID != id {
		return nil, beeyard.Because(beeyard.ErrNotTask, "it says task_id "+beeyard.Quote(t.ID)+", which is not its name")
	}
	return t, nil
}

// writeBody writes a new file and flushes its data, without publishing it: a
// name that comes before its data is an empty file after a power cut. On any
// error the file is removed and nothing was decided.
func writeBody(dir durable.Dir, name string, data []byte, sync bool) (err error) {
	f, err := dir.Create(name, fileMode)
	if err != nil {
		return fmt.Errorf("create %s: %w", name, err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, ignoreMissing(dir.Remove(name)))
		}
	}()
	if _, err = f.Write(data); err != nil {
		return errors.Join(fmt.Errorf("write %s: %w", name, err), f.Close())
	}
	if sync {
		if err = f.Sync(); err != nil {
			return errors.Join(fmt.Errorf("sync %s: %w", name, err), f.Close())
		}
	}
	if err = f.Close(); err != nil {
		return fmt.Errorf("close %s: %w", name, err)
	}
	return nil
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func missing(err error) bool { return errors.Is(err, fs.ErrNotExist) }

func exists(err error) bool { return errors.Is(err, fs.ErrExist) }
