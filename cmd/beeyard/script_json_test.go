package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"sort"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

func cmdWaitOut(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: waitout PATTERN PROGRAM [ARG…]")
	}
	re, err := regexp.Compile("(?m)" + args[0])
	ts.Check(err)
	until(ts, args[0]+" from "+strings.Join(args[1:], " "), func() bool {
		return ts.Exec(args[1], args[2:]...) == nil && re.MatchString(ts.ReadFile("stdout"))
	})
}

func cmdJSON(ts *testscript.TestScript, neg bool, args []string) {
	v, err := oneJSON([]byte(ts.ReadFile("stdout")))
	if err != nil {
		ts.Fatalf("stdout is not one JSON value: %v", err)
	}
	if len(args) == 0 {
		return
	}
	got, err := at(v, args[0])
	if len(args) == 1 {
		if (err == nil) == neg {
			ts.Fatalf("%s: found %q, %v", args[0], got, err)
		}
		return
	}
	if want := strings.Join(args[1:], " "); (err == nil && got == want) == neg {
		ts.Fatalf("%s is %q (%v), wanted %q", args[0], got, err, want)
	}
}

func cmdJSONEnv(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: jsonenv NAME PATH")
	}
	v, err := oneJSON([]byte(ts.ReadFile("stdout")))
	ts.Check(err)
	got, err := at(v, args[1])
	ts.Check(err)
	ts.Setenv(args[0], got)
}

func cmdJSONLines(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: jsonlines COUNT")
	}
	lines := strings.Split(strings.TrimSuffix(ts.ReadFile("stdout"), "\n"), "\n")
	if fmt.Sprint(len(lines)) != args[0] {
		ts.Fatalf("%d lines, wanted %s", len(lines), args[0])
	}
	for _, l := range lines {
		if _, err := oneJSON([]byte(l)); err != nil {
			ts.Fatalf("%v: %s", err, l)
		}
	}
}

// oneJSON reads data as exactly one JSON value.
func oneJSON(data []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("more than one value in %q", data)
	}
	return v, nil
}

// at follows a dotted path; text comes as it is, all else as JSON.
func at(v any, path string) (string, error) {
	for _, key := range strings.Split(path, ".") {
		switch here := v.(type) {
		case map[string]any:
			if key == "len" || key == "#" {
				v = json.Number(strconv.Itoa(len(here)))
				continue
			}
			next, ok := here[key]
			if !ok {
				keys := make([]string, 0, len(here))
				for k := range here {
					keys = append(keys, k)
				}
				sort.Strings(keys)
				return "", fmt.Errorf("there is no %q among %v", key, keys)
			}
			v = next
		case []any:
			if key == "len" || key == "#" {
				v = json.Number(strconv.Itoa(len(here)))
				continue
			}
			i, err := strconv.Atoi(key)
			if err != nil || i < 0 || i >= len(here) {
				return "", fmt.Errorf("there is no %q among %d elements", key, len(here))
			}
			v = here[i]
		default:
			return "", fmt.Errorf("there is nothing below %v at %q", here, key)
		}
	}
	if s, ok := v.(string); ok {
		return s, nil
	}
	b, err := json.Marshal(v)
	return string(b), err
}
