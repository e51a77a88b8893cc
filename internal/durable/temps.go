package durable

import (
	"errors"
	"io/fs"
	"time"
)

// CleanTemps removes what writers that died left behind: files under temporary
// names that neither data nor status changed since now - olderThan, and gives
// their number. It goes on past one that it cannot remove and returns those
// errors joined. The limit must be far above what a write takes: a file that
// is still being written must not be pulled away. Now is the file server's
// (ServerNow) where that may differ from one's own.
func CleanTemps(d Dir, olderThan time.Duration, now time.Time) (int, error) {
	var temps []string
	err := d.Each(func(e Entry) bool {
		if IsTemp(e.Name) {
			temps = append(temps, e.Name)
		}
		return true
	})
	if err != nil {
		return 0, err
	}
	var (
		limit  = now.Add(-olderThan)
		n      int
		failed []error
	)
	for _, name := range temps {
		info, err := d.Stat(name)
		if err == nil {
			if info.Mode.IsDir() || !info.ModTime.Before(limit) || !info.ChangeTime.Before(limit) {
				continue
			}
			err = d.Remove(name)
		}
		switch {
		case err == nil:
			n++
		case !errors.Is(err, fs.ErrNotExist): // its writer, or another janitor
			failed = append(failed, err)
		}
	}
	return n, errors.Join(failed...)
}

// ServerNow is the time by the clock of the file server, which is the one that
// stamps beats: it touches a file of this folder, makes it if it is missing,
// and reads its time back. The file is opened first, since NFS looks at the
// server again at an open and may answer a stat by name from memory.
func ServerNow(d Dir, name string) (time.Time, error) {
	f, err := d.Append(name, 0o600)
	if err != nil {
		return time.Time{}, err
	}
	defer f.Close()
	if err := f.Touch(); err != nil {
		return time.Time{}, err
	}
	info, err := f.Stat()
	return info.ModTime, err
}
