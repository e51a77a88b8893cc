package ledger

import (
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// cpuTime is what this process has used of the processors.
func cpuTime(t testing.TB) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// TestHostileInputIsCheap holds both readings to 100 ms and 64 MiB for 1 MiB.
// The time is the least of a few tries, and of the clock's and the processor's,
// for the machine may be busy.
func TestHostileInputIsCheap(t *testing.T) {
	if raceEnabled {
		t.Skip("SKIP: time bounds do not hold under the race detector")
	}
	const mib, limit = 1 << 20, 100 * time.Millisecond
	var keys, nested, wide strings.Builder
	for i := 0; keys.Len() < mib; i++ {
		keys.WriteString(strings.Repeat("k", 1+i%3) + string(rune('a'+i%26)) + string(rune(0x4e00+i%20000)) + ": 1\n")
		wide.WriteString("k" + string(rune('a'+(mib-i)%26)) + string(rune('a'+i/26%26)) + string(rune('a'+i/676%26)) + string(rune('a'+i/17576%26)) + ":\n")
	}
	for i := 0; nested.Len() < mib; i++ {
		nested.WriteString(strings.Repeat(" ", i) + "a:\n")
	}
	head := "schema_version: 1\n"
	for name, in := range map[string]string{
		"keys": keys.String()[:mib], "nested": nested.String()[:mib], "wide": wide.String()[:min(mib, wide.Len())],
		"same key": strings.Repeat("a: 1\n", mib/5), "brackets": "a: " + strings.Repeat("[", mib), "list": "a: [" + strings.Repeat("1,", mib/2) + "1]",
		"escapes": `a: "` + strings.Repeat(`\u0041`, mib/6) + `"`, "lines": strings.Repeat("\n", mib), "comments": strings.Repeat("#\n", mib/2),
		"quotes": strings.Repeat("\"", mib), "string keys": strings.Repeat(`"a\n`, mib/4), "spaces": strings.Repeat(" ", mib), "word": "a: " + strings.Repeat("w ", mib/2),
		"objects": "a: " + strings.Repeat(`{"a":`, 500) + "1" + strings.Repeat("}", 500) + strings.Repeat(" ", mib/2), "list of maps": "a: [" + strings.Repeat(`{"b":1,"a":2},`, mib/14) + "1]",
	} {
		for reading, read := range map[string]func([]byte) (*Document, error){"strict": Read, "lenient": ReadCompat} {
			least, most := time.Hour, uint64(0)
			for try := 0; try < 20 && least > limit; try++ {
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				start, cpu := time.Now(), cpuTime(t)
				_, _ = read([]byte(head + in))
				least = min(least, time.Since(start), cpuTime(t)-cpu)
				runtime.ReadMemStats(&after)
				most = after.TotalAlloc - before.TotalAlloc
			}
			if least > limit || most > 64<<20 {
				t.Errorf("%s, %s: %v and %d MiB", name, reading, least, most>>20)
			}
		}
	}
}
