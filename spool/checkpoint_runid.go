package spool

import (
	"bytes"
	"encoding/json"
	"io"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"beeyard"
	"beeyard/internal/durable"
)

// maxRunID bounds what is believed to be a run's id.
const maxRunID = 1024

// readRunID is status.json's run_id, else the folder's name. It reads no
// further than that key: every start of every command pays for it, and the
// file may list 100,000 tasks.
func (r *Run) readRunID() string {
	f, err := r.root.Open(fileStatus)
	if err != nil {
		return filepath.Base(r.path)
	}
	defer f.Close()
	id, schema, whole := scanRun(f)
	r.schema = schema
	if id == "" && !whole {
		return r.salvageRunID(nil)
	}
	if id == "" {
		return filepath.Base(r.path)
	}
	return id
}

func scanRunID(text io.Reader) (id string, whole bool) {
	id, _, whole = scanRun(text)
	return id, whole
}

// scanRun looks for the run_id of a JSON object, and for a schema_version on
// the way there (writers put it first); whole is false when the text ended or
// broke before there was an answer.
func scanRun(text io.Reader) (id, schema string, whole bool) {
	dec := json.NewDecoder(text)
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return "", "", false
	}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return "", schema, false
		}
		var raw json.RawMessage
		if dec.Decode(&raw) != nil {
			return "", schema, false
		}
		if key != "run_id" && key != "schema_version" {
			continue
		}
		var s string
		if json.Unmarshal(raw, &s) != nil || len(s) > maxRunID || !utf8.ValidString(s) {
			s = ""
		}
		if key == "run_id" {
			return s, schema, true
		}
		schema = s
	}
	_, err := dec.Token()
	return "", schema, err == nil
}

// knownSchema refuses a run of a schema that this program does not know:
// nothing may be claimed by rules that have changed.
func (r *Run) knownSchema() error {
	major, _, _ := strings.Cut(r.schema, ".")
	if major == "" || major == "0" {
		return nil
	}
	return &beeyard.Error{Op: "claim", ID: r.id, Err: beeyard.Because(beeyard.ErrSchema, "schema_version "+beeyard.Quote(r.schema)+" of status.json is newer than this program"),
		Hint: "use a newer beeyard for this run"}
}

// salvageRunID is the id of a run whose status.json is damaged: what its text
// still says, else what a task of the run says, else the folder's name.
func (r *Run) salvageRunID(data []byte) string {
	if id, _ := scanRunID(bytes.NewReader(data)); id != "" {
		return id
	}
	for _, dir := range []durable.Dir{r.pending, r.done, r.failed, r.held} {
		looked := 0
		id := ""
		// A folder that cannot be listed has nothing to say, like an empty one.
		_ = dir.Each(func(e durable.Entry) bool {
			task, ok := taskIDOf(e.Name)
			if !ok {
				return true
			}
			if t, _, err := readTask(dir, e.Name, task); err == nil && len(t.RunID) <= maxRunID && beeyard.ValidText(t.RunID) {
				id = t.RunID
			}
			looked++
			return id == "" && looked < 8
		})
		if id != "" {
			return id
		}
	}
	return filepath.Base(r.path)
}
