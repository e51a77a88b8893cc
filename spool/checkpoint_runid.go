package spool

import (
	"bytes"
	"encoding/json"
	"io"
	"path/filepath"
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
	id, whole := scanRunID(f)
	if id == "" && !whole {
		return r.salvageRunID(nil)
	}
	if id == "" {
		return filepath.Base(r.path)
	}
	return id
}

// scanRunID looks for the run_id of a JSON object; whole is false when the
// text ended or broke before there was an answer.
func scanRunID(text io.Reader) (id string, whole bool) {
	dec := json.NewDecoder(text)
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return "", false
	}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return "", false
		}
		if key != "run_id" {
			var skip json.RawMessage
			if dec.Decode(&skip) != nil {
				return "", false
			}
			continue
		}
		var v any
		if dec.Decode(&v) != nil {
			return "", false
		}
		s, _ := v.(string)
		if len(s) > maxRunID || !utf8.ValidString(s) {
			s = ""
		}
		return s, true
	}
	_, err := dec.Token()
	return "", err == nil
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
