package spool

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"beeyard"
	"beeyard/internal/durable"
)

func indexCandidate(t *rapid.T, i int) *candidate {
	task := pickAnyTask(t, rapid.StringMatching(`[a-zé]{0,3}`).Draw(t, "prefix")+fmt.Sprint(i))
	task.DependsOn = rapid.SliceOfN(rapid.StringMatching(`[a-c]{1,2}`), 0, 4).Draw(t, "deps")
	task.Ext.NotBefore = rapid.SampledFrom([]string{"", "", "2026-03-01T00:00:00.5Z", "never"}).Draw(t, "not before")
	if rapid.IntRange(0, 9).Draw(t, "hold") == 0 {
		task.Ext.Hold = &beeyard.Hold{By: "someone"}
	}
	return newCandidate(task, rapid.Uint64Range(1, 1<<40).Draw(t, "ino"),
		durable.Info{Size: rapid.Int64Range(0, 1<<24).Draw(t, "size"), ModTime: time.Unix(0, rapid.Int64().Draw(t, "mtime"))})
}

// What was written is found under its name and inode number alone, in claim
// order, every field as it was.
func TestIndexRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var list []*candidate
		for i := range rapid.IntRange(0, 60).Draw(t, "n") {
			list = append(list, indexCandidate(t, i))
		}
		sortCandidates(list)
		x, err := openIndexBytes(buildIndex(list, rapid.Uint64().Draw(t, "seed")))
		if err != nil || x.len() != len(list) {
			t.Fatalf("%d entries, %v", x.len(), err)
		}
		for i, want := range list {
			if got := x.find([]byte(want.id), want.ino); got != i {
				t.Fatalf("%q is at %d, want %d", want.id, got, i)
			}
			if x.find([]byte(want.id), want.ino+1<<41) >= 0 || x.find([]byte(want.id+"."), want.ino) >= 0 {
				t.Fatalf("%q was found under another name or number", want.id)
			}
			var got candidate
			if !x.candidate(i, &got) {
				t.Fatalf("%q cannot be read", want.id)
			}
			if !got.due.Equal(want.due) {
				t.Fatalf("due %v, want %v", got.due, want.due)
			}
			got.due = want.due
			if got.labels == nil {
				got.labels = want.labels
			}
			if got.deps == nil {
				got.deps = want.deps
			}
			if !reflect.DeepEqual(&got, want) {
				t.Fatalf("read %+v, want %+v", got, *want)
			}
		}
	})
}

func indexSample() []byte {
	var list []*candidate
	for i := range 20 {
		list = append(list, newCandidate(pickTask(i, pickPriority(i%3), pickNeeds("a", "b"),
			pickNotBefore(time.Unix(1, 0)), func(t *beeyard.Task) { t.Ext.Labels = []string{"x"} }), uint64(i+1), durable.Info{Size: 1}))
	}
	sortCandidates(list)
	return buildIndex(list, 42)
}

// indexUse does everything that is done with an index.
func indexUse(data []byte) {
	x, err := openIndexBytes(data)
	if err != nil {
		return
	}
	at := make([]int32, x.len())
	var c candidate
	for i := range x.len() {
		at[i] = int32(i)
		x.candidate(i, &c)
		x.find([]byte(c.id), x.ino(i))
		x.fresh(i, durable.Info{})
	}
	x.find([]byte("task-000001"), 2)
	x.take(at)
}

// indexSeal makes the checksums right, as somebody who wants to hurt would.
func indexSeal(data []byte) []byte {
	if len(data) < indexHeader {
		return data
	}
	binary.LittleEndian.PutUint32(data[hdrBodySum:], crc32.Checksum(data[indexHeader:], indexSums))
	binary.LittleEndian.PutUint32(data[hdrSum:], crc32.Checksum(data[:hdrSum], indexSums))
	return data
}

// Any damage is noticed; where the checksums were made to fit it does no harm.
func TestIndexDamage(t *testing.T) {
	whole := indexSample()
	for i := range whole {
		torn := bytes.Clone(whole)
		torn[i] ^= 1 << (i % 8)
		// The last bytes of the header are not used.
		if _, err := openIndexBytes(torn); err == nil && (i < hdrSum+4 || i >= indexHeader) {
			t.Fatalf("a changed byte %d went unnoticed", i)
		}
		for _, v := range []byte{0, 0x7f, 0x80, 0xff} {
			torn[i] = v
			indexUse(indexSeal(torn))
		}
		if _, err := openIndexBytes(whole[:i]); err == nil {
			t.Fatalf("cut to %d bytes it was taken", i)
		}
		indexUse(indexSeal(bytes.Clone(whole[:i])))
	}
}

func FuzzIndex(f *testing.F) {
	f.Add(indexSample())
	f.Add(buildIndex(nil, 1))
	f.Add([]byte(indexMagic))
	f.Fuzz(func(_ *testing.T, data []byte) {
		indexUse(data)
		indexUse(indexSeal(bytes.Clone(data)))
	})
}

// A file that is no index, or half of one, costs time and changes nothing.
func TestIndexForeign(t *testing.T) {
	r := pickRun(t)
	pickFill(t, r, dirPending, 300)
	path := filepath.Join(r.path, dirMeta, fileIndex)
	for name, data := range map[string][]byte{
		"empty": {}, "text": []byte("hello"), "zeroes": make([]byte, 1<<16), "another's": indexSample(), "half": indexSample()[:500],
	} {
		pickMust(t, os.WriteFile(path, data, 0o600))
		if got, want := pickOnceID(t, r, beeyard.Filter{}), pickFirst(t, r); got != want {
			t.Errorf("beside an index that is %s: claimed %q, want %q", name, got, want)
		}
	}
	pickMust(t, os.Remove(path))
	pickMust(t, os.Mkdir(path, 0o700)) // cannot even be replaced
	if got, want := pickOnceID(t, r, beeyard.Filter{Strict: true}), pickFirst(t, r); got != want {
		t.Errorf("beside a folder in its place: claimed %q, want %q", got, want)
	}
}

// pickFirst is the id that is due after what was taken into artifacts/.
func pickFirst(t *testing.T, r *Run) string {
	t.Helper()
	taken, err := os.ReadDir(filepath.Join(r.path, dirArtifacts))
	pickMust(t, err)
	return pickTask(len(taken) - 1).ID
}

// Whoever had to read many bodies leaves the index behind, and the next one
// reads none.
func TestIndexSavesReads(t *testing.T) {
	base := pickRun(t)
	pickFill(t, base, dirPending, 700)
	pickFill(t, base, dirHeld, 300, func(t *beeyard.Task) { t.ID = "held-" + t.ID }, pickNotBefore(time.Now().Add(time.Hour)))
	count := func(f func(r *Run)) int {
		var n *durable.Counter
		r, err := Open(base.path, Options{Wrap: func(d durable.Dir) durable.Dir {
			d, n = durable.Counting(d)
			return d
		}}, base.clk)
		pickMust(t, err)
		defer func() { pickMust(t, r.Close()) }()
		n.Reset()
		f(r)
		return n.Of(durable.OpReadFile)
	}
	none := func(string) (bool, error) { return false, nil }
	for _, how := range []struct {
		name string
		f    func(r *Run)
	}{
		{"a one-shot claim", func(r *Run) { pickMust(t, r.pickOnce(pickContext(t), beeyard.Filter{}, none)) }},
		{"a worker", func(r *Run) {
			p := r.newPicker()
			_, ok, err := p.next(pickContext(t), beeyard.Filter{})
			pickMust(t, err)
			if !ok {
				t.Error("nothing is ready")
			}
			pickMust(t, p.close())
		}},
	} {
		pickMust(t, ignoreMissing(base.meta.Remove(fileIndex)))
		if n := count(how.f); n < 1000 {
			t.Errorf("%s without an index read %d bodies, want all 1000", how.name, n)
		}
		if n := count(how.f); n > 10 {
			t.Errorf("%s with an index read %d bodies, want none", how.name, n)
		}
	}
}

func TestIndexSort(t *testing.T) {
	r := pickRun(t)
	var list []*candidate
	for i := range 50 {
		list = append(list, newCandidate(pickTask((i*37)%50), uint64(i+1), durable.Info{}))
	}
	pickMust(t, r.saveIndex(list))
	x := r.openIndex()
	defer x.close()
	var ids []string
	var c candidate
	for i := range x.len() {
		x.candidate(i, &c)
		ids = append(ids, c.id)
	}
	if len(ids) != 50 || !slices.IsSorted(ids) {
		t.Errorf("entries are not in claim order: %v", ids)
	}
}
