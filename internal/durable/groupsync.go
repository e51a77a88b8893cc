package durable

import "golang.org/x/sys/unix"

// syncFSFrom is the number of files from which one flush of the whole file
// system is cheaper than one of each.
const syncFSFrom = 16

// SyncFiles makes the data of many files of one file system durable: each by
// itself below 16 of them, all by one SyncFS from there on. After an error
// treat all of them as lost (see File.Sync): which one failed is not known.
func SyncFiles(d Dir, files []File) error {
	// Before Linux 5.8 syncfs answered success for data it could not write.
	if len(files) >= syncFSFrom && syncfsTells() {
		return d.SyncFS()
	}
	for _, f := range files {
		if err := f.Sync(); err != nil {
			return err
		}
	}
	return nil
}

// SyncDirs flushes the names of several folders, each once however often given.
func SyncDirs(dirs ...Dir) error {
	done := make(map[Dir]bool, len(dirs))
	for _, d := range dirs {
		if done[d] {
			continue
		}
		done[d] = true
		if err := d.Sync(); err != nil {
			return err
		}
	}
	return nil
}

var syncfsTells = func() bool { return kernelAtLeast(5, 8) }

func kernelAtLeast(major, minor int) bool {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return false
	}
	have, at := [2]int{}, 0
	for _, c := range u.Release {
		switch {
		case c >= '0' && c <= '9':
			have[at] = have[at]*10 + int(c-'0')
		case c == '.' && at == 0:
			at = 1
		default:
			return have[0] > major || have[0] == major && have[1] >= minor
		}
	}
	return have[0] > major || have[0] == major && have[1] >= minor
}
