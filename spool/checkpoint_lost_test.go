package spool

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"beeyard"
	"beeyard/internal/clock"
	"beeyard/internal/durable"
)

func init() {
	testChildren["chk-complete"] = chkChildComplete
	testChildren["chk-write"] = chkChildWrite
	testChildren["chk-older"] = chkChildOlder
}

// chkChildComplete claims and completes tasks as single commands do.
func chkChildComplete(args []string) error {
	dir, ids := args[0], args[1:]
	ctx := context.Background()
	r, err := Open(dir, Options{}, clock.Real())
	if err != nil {
		return err
	}
	for _, id := range ids {
		d, err := r.newClaimDir(ctx, "w", beeyard.KindSingle)
		if err != nil {
			return err
		}
		t, _, err := r.take(ctx, d, id)
		if err != nil {
			return fmt.Errorf("claim %s: %w", id, err)
		}
		if _, err := r.Settle(ctx, beeyard.Ref{TaskID: id, Token: d.token(t.Ext.Rev)}, beeyard.Settlement{Outcome: beeyard.OutcomeDone}); err != nil {
			return fmt.Errorf("settle %s: %w", id, err)
		}
		// The answer is given: from here on the id is listed.
		set, err := r.completedSet()
		if err != nil || !set[id] {
			return fmt.Errorf("%s was settled and is not listed (%w)", id, err)
		}
		if err := d.close(); err != nil {
			return err
		}
	}
	return r.Close()
}

// chkChildWrite writes one key of metadata each time.
func chkChildWrite(args []string) error {
	r, err := Open(args[0], Options{}, clock.Real())
	if err != nil {
		return err
	}
	for _, key := range args[1:] {
		if _, err := r.WriteCheckpoint(context.Background(), beeyard.CheckpointEdit{
			Summary: &key, Metadata: map[string]json.RawMessage{key: []byte("1")}}); err != nil {
			return err
		}
	}
	return r.Close()
}

// chkChildOlder completes as a program of the original format does: rename,
// then under the lock read, append and replace, without any flush, and without
// the keys that it does not know.
func chkChildOlder(args []string) error {
	root, err := durable.OpenRoot(args[0])
	if err != nil {
		return err
	}
	for _, id := range args[1:] {
		if err := os.Rename(args[0]+"/pending/"+id+".json", args[0]+"/done/"+id+".json"); err != nil {
			return err
		}
		unlock, err := root.Lock(context.Background(), fileStatusLock)
		if err != nil {
			return err
		}
		data, err := os.ReadFile(args[0] + "/status.json")
		if err != nil {
			return err
		}
		c, err := beeyard.DecodeCheckpoint(data, "")
		if err != nil {
			return err
		}
		c.Unknown, c.UnknownCheckpoint = nil, nil
		if !slices.Contains(c.CompletedTasks, id) {
			c.CompletedTasks = append(c.CompletedTasks, id)
		}
		if data, err = c.Encode(); err != nil {
			return err
		}
		temp := args[0] + "/status.json.tmp" + strconv.Itoa(os.Getpid())
		if err := os.WriteFile(temp, data, 0o600); err != nil {
			return err
		}
		if err := os.Rename(temp, args[0]+"/status.json"); err != nil {
			return err
		}
		unlock()
	}
	return root.Close()
}

// Fault "Lost updates in a shared JSON": 40 completions and 40 writes of
// several processes at once, an older program among them.
func TestLostUpdatesInASharedJSON(t *testing.T) {
	r := chkRun(t, Options{})
	ours, theirs, keys := chkIDs("our", 40), chkIDs("older", 20), chkIDs("key", 40)
	chkPut(t, r.pending, ours...)
	chkPut(t, r.pending, theirs...)
	var children []func() error
	start := func(name string, all []string, by int) {
		for part := range slices.Chunk(all, by) {
			cmd := chkChild(t, name, append([]string{r.path}, part...)...)
			children = append(children, cmd.Wait)
		}
	}
	start("chk-complete", ours, 10)
	start("chk-write", keys, 10)
	start("chk-older", theirs, 10)
	for _, wait := range children {
		if err := wait(); err != nil {
			t.Errorf("a process failed: %v", err)
		}
	}
	c := chkRaw(t, r)
	got := slices.Sorted(slices.Values(c.CompletedTasks))
	if want := append(slices.Clone(theirs), ours...); !slices.Equal(got, slices.Sorted(slices.Values(want))) {
		t.Errorf("%d ids are listed, want %d: %q", len(got), len(want), got)
	}
	if got := slices.Sorted(maps.Keys(c.Metadata)); !slices.Equal(got, keys) {
		t.Errorf("%d of 40 writes are there: %q", len(got), got)
	}
	if !strings.HasPrefix(c.Summary, "key") || c.Risk != "a person's word" {
		t.Errorf("summary %q, risk %q", c.Summary, c.Risk)
	}
	chkNoTemps(t, r.path)
}
