package proc

import (
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A system call filter rather than a network namespace: that needs root or
// user namespaces, which distributions restrict, and costs milliseconds.
// Landlock alone leaves UDP (before version 10) and multipath TCP open.

// auditArch is the only architecture whose calls pass: a 64-bit kernel also
// takes 32-bit calls, whose numbers mean other things.
func auditArch() (uint32, bool) {
	switch runtime.GOARCH {
	case "amd64":
		return unix.AUDIT_ARCH_X86_64, true
	case "arm64":
		return unix.AUDIT_ARCH_AARCH64, true
	}
	return 0, false
}

func socketFilterWorks() bool {
	_, known := auditArch()
	_, err := unix.PrctlRetInt(unix.PR_GET_SECCOMP, 0, 0, 0, 0)
	return known && err == nil
}

// Offsets into struct seccomp_data, for little-endian machines.
const (
	dataNr   = 0
	dataArch = 4
	dataArg0 = 16
	// x32Bit marks calls of amd64's third interface.
	x32Bit = 0x40000000
)

// denySockets lets this thread, and what it execs, make no sockets but local
// ones. io_uring is denied because it makes sockets past the filter. The
// caller is locked to its thread and has no_new_privs set.
func denySockets() error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	filter := socketFilter()
	prog := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	return unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&prog)), 0, 0)
}

func socketFilter() []unix.SockFilter {
	arch, _ := auditArch()
	const (
		load  = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
		equal = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
		least = unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K
		ret   = unix.BPF_RET | unix.BPF_K
		deny  = unix.SECCOMP_RET_ERRNO | uint32(unix.EACCES)
		none  = unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)
	)
	// Jumps count instructions to skip: if equal, else.
	return []unix.SockFilter{
		{Code: load, K: dataArch},
		{Code: equal, K: arch, Jt: 0, Jf: 8}, // other architecture: none
		{Code: load, K: dataNr},
		{Code: least, K: x32Bit, Jt: 6, Jf: 0}, // x32: none
		{Code: equal, K: unix.SYS_IO_URING_SETUP, Jt: 5, Jf: 0},
		{Code: equal, K: unix.SYS_SOCKET, Jt: 0, Jf: 2},
		{Code: load, K: dataArg0},
		{Code: equal, K: unix.AF_UNIX, Jt: 0, Jf: 1},
		{Code: ret, K: unix.SECCOMP_RET_ALLOW},
		{Code: ret, K: deny},
		{Code: ret, K: none},
	}
}
