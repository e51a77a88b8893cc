package beeyard_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"beeyard"

	"pgregory.net/rapid"
)

// What is written by hand must be what the general encoder writes, and must
// read back as it was.
func TestEncodeReadsBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.String()
		task := &beeyard.Task{
			ID: "t1", Type: text.Draw(t, "type"), RunID: text.Draw(t, "run"), CreatedAt: text.Draw(t, "at"), CreatedBy: text.Draw(t, "by"),
			DependsOn: rapid.SliceOf(rapid.StringMatching(`x[a-zA-Z0-9."é-]{0,8}`)).Draw(t, "deps"),
			Payload:   json.RawMessage(`{"a": [1, 2.50]}`), TierHint: text.Draw(t, "tier"), Deadline: text.Draw(t, "deadline"),
		}
		task.Ext.Priority = rapid.IntRange(-2, 2).Draw(t, "priority")
		data, err := task.Encode()
		if err != nil {
			t.Fatal(err)
		}
		task.Unknown = map[string]json.RawMessage{"zzz": json.RawMessage("1")}
		general, err := task.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if want := bytes.Replace(general, []byte(`, "zzz": 1`), nil, 1); !bytes.Equal(data, want) {
			t.Fatalf("by hand: %s\ngeneral: %s", data, want)
		}
		back, err := beeyard.DecodeTask(data)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := back.Encode(); err != nil || !bytes.Equal(again, data) {
			t.Fatalf("%s\nread back: %s, %v", data, again, err)
		}
	})
}
