package ledger

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"beeyard"
	"beeyard/internal/durable"

	"golang.org/x/sys/unix"
)

// MaxBytes is the largest ledger that is read: some 700,000 items.
const MaxBytes = 256 << 20

// New ledgers and the folders made for them are for their owner alone.
const (
	filePerm = 0o600
	dirPerm  = 0o700
)

// File is a ledger in a folder. Two locks guard it: the lease in the document
// says who sweeps, the flock on "<name>.lock" says who writes this instant.
// The flock is held over load, change and write, so operations that need no
// lease are safe in the middle of another writer's sweep, and the older engine,
// which takes the same flock, can run side by side.
type File struct {
	folder, name string
	spelling     Spelling
	before       func(durable.Dir) durable.Dir // tests put a failing file system here
}

// OpenFile names a ledger; nothing is read yet. The spelling decides how it is
// read and written: Compat as the older engine does, Native strictly.
func OpenFile(path string, s Spelling) (*File, error) {
	abs, err := filepath.Abs(path)
	if err != nil || path == "" {
		return nil, fmt.Errorf("find ledger %q: %w", path, errors.Join(beeyard.ErrUsage, err))
	}
	return &File{folder: filepath.Dir(abs), name: filepath.Base(abs), spelling: s}, nil
}

// Path is where the ledger is.
func (f *File) Path() string { return filepath.Join(f.folder, f.name) }

// LockName is the file whose flock writers hold. Its content is ignored and it
// is never removed.
func (f *File) LockName() string { return f.name + ".lock" }

// Load reads the ledger without a lock: a write replaces the whole file, so a
// reader sees one document or the next. A missing or empty file is nil, nil. The
// error wraps beeyard.ErrCorrupt for what is no ledger, belongs to another user,
// or is no regular file.
func (f *File) Load() (*Document, error) {
	dir, err := durable.OpenRoot(f.folder, durable.ReadOnly())
	if notThere(err) {
		return nil, nil
	}
	if err != nil {
		return nil, f.openError(err)
	}
	defer shut(dir)
	return f.load(dir)
}

func (f *File) load(dir durable.Dir) (*Document, error) {
	data, info, err := dir.ReadFile(f.name, MaxBytes)
	if notThere(err) {
		return nil, nil
	}
	if err != nil {
		return nil, f.openError(err)
	}
	// Whoever owns the file can change it under every lock, and under a shared
	// temporary folder anyone can put one there first.
	if me := unix.Geteuid(); int(info.UID) != me {
		return nil, f.corrupt(&CorruptError{Reason: fmt.Sprintf("it belongs to user %d and you are user %d", info.UID, me)})
	}
	var d *Document
	if f.spelling == Native {
		d, err = Read(data)
	} else {
		d, err = ReadCompat(data)
	}
	if err != nil {
		return nil, f.corrupt(err)
	}
	return d, nil
}

func (f *File) corrupt(err error) error {
	return &beeyard.Error{Op: "read ledger", ID: f.Path(), Err: err,
		Hint: "nothing was written; look at that line, and at older copies in git, and put it right by hand"}
}

// openError makes what cannot be trusted as a ledger's place corrupt.
func (f *File) openError(err error) error {
	for _, unfit := range [...]error{durable.ErrUnsafe, durable.ErrNotRegular, durable.ErrTooLarge} {
		if errors.Is(err, unfit) {
			return &beeyard.Error{Op: "open ledger", ID: f.Path(), Err: errors.Join(beeyard.ErrCorrupt, err)}
		}
	}
	return fmt.Errorf("open ledger: %w", err)
}

// Update holds the lock, loads the ledger (a new document when there is none),
// calls change, and writes what came of it if the outcome says that something
// changed. When it returns an OK outcome and a nil error, the change is durable.
// On an error the file is as it was, unless the error is of the very last step,
// the flush of the folder. Waiting for the lock ends with ctx.
func (f *File) Update(ctx context.Context, change func(*Document) Outcome) (Outcome, error) {
	out := Outcome{}
	err := f.locked(ctx, func(dir durable.Dir) (err error) {
		out, err = f.update(dir, change)
		return err
	})
	return out, err
}

// locked calls do while the flock is held.
func (f *File) locked(ctx context.Context, do func(durable.Dir) error) error {
	dir, err := f.openFolder()
	if err != nil {
		return f.openError(err)
	}
	defer shut(dir)
	unlock, err := dir.Lock(ctx, f.LockName())
	if errors.Is(err, durable.ErrLocked) {
		return &beeyard.Error{Op: "lock ledger", ID: f.Path(), Err: errors.Join(beeyard.ErrTimeout, err),
			Hint: "another process is writing it; try again, or find who holds the .lock file open"}
	}
	if err != nil {
		return fmt.Errorf("lock ledger: %w", err)
	}
	defer unlock()
	return do(dir)
}

func (f *File) update(dir durable.Dir, change func(*Document) Outcome) (Outcome, error) {
	d, err := f.load(dir)
	if err != nil {
		return Outcome{}, err
	}
	if d == nil {
		d = NewDocument()
	}
	out := change(d)
	if !out.changed {
		return out, nil
	}
	if f.spelling == Native && d.Schema() != schemaVersion {
		return newer(d.Schema()), nil
	}
	return out, f.store(dir, d.Bytes(f.spelling))
}

func (f *File) store(dir durable.Dir, data []byte) error {
	if err := durable.ReplaceFile(dir, f.name, data, filePerm); err != nil {
		return fmt.Errorf("write ledger: %w", err)
	}
	return nil
}

// newer refuses to write a version whose rules are not known here: a field that
// this program takes for foreign could be one that it must keep in step.
func newer(schema int64) Outcome {
	return refuse(Refused, fmt.Sprintf("schema_version %d is newer than this program's %d", schema, schemaVersion),
		"use the beeyard that wrote it")
}

func (f *File) openFolder() (durable.Dir, error) {
	dir, err := durable.MkdirAll(f.folder, dirPerm)
	if err == nil && f.before != nil {
		dir = f.before(dir)
	}
	return dir, err
}

// Clean removes temporary files that a killed writer of this ledger left. It
// holds the lock, under which no writer of it can be alive.
func (f *File) Clean(ctx context.Context) error {
	return f.locked(ctx, f.clean)
}

func (f *File) clean(dir durable.Dir) error {
	prefix := durable.TempName(f.name)
	prefix = prefix[:len(prefix)-16] // all but the random end
	var names []string
	err := dir.Each(func(e durable.Entry) bool {
		if durable.IsTemp(e.Name) && len(e.Name) == len(prefix)+16 && e.Name[:len(prefix)] == prefix {
			names = append(names, e.Name)
		}
		return true
	})
	for _, name := range names {
		if rerr := dir.Remove(name); rerr != nil && !notThere(rerr) {
			err = errors.Join(err, rerr)
		}
	}
	return err
}

func notThere(err error) bool { return errors.Is(err, fs.ErrNotExist) }

// shut closes a folder. What was written through it has been flushed by then, so
// the close has nothing to say.
func shut(d durable.Dir) { _ = d.Close() }
