package strict

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// YAML reads one document of plain YAML and returns its root node: a mapping, a
// list or a scalar, each with its line. It refuses what makes YAML mean
// different things to different readers, or cost more than its size: anchors,
// aliases, merge keys, tags, a second document, directives, duplicate keys, keys
// that are no scalars, bytes that are not UTF-8, a byte-order mark, tabs in
// indentation, numbers other than decimal ones, and anything over the bounds.
// An empty document is a nil node and a nil error.
//
// yaml/v3 and not v4, because a list of 1 MiB costs v4 1.5 s and 950 MB
// (v4.0.0), eight times what it costs v3.
func YAML(data []byte, o Options) (*yaml.Node, error) {
	if err := yamlBounds(data, o); err != nil {
		return nil, err
	}
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc yaml.Node
	if err := dec.Decode(&doc); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, nil
		}
		return nil, yamlError(err)
	}
	var second yaml.Node
	switch err := dec.Decode(&second); {
	case err == nil:
		return nil, &Error{Offset: -1, Line: max(second.Line, 1), Reason: "a second document"}
	case !errors.Is(err, io.EOF):
		return nil, yamlError(err)
	}
	if len(doc.Content) != 1 {
		return nil, nil
	}
	root := doc.Content[0]
	if err := plainNode(root, 1, o.maxDepth()); err != nil {
		return nil, err
	}
	if root.Kind == yaml.ScalarNode && root.Tag == "!!null" && root.Value == "" {
		return nil, nil // comments only
	}
	return root, nil
}

// yamlBounds refuses what must not reach the parser. The count is of bytes that
// can start a node, an upper bound that prose stays far below.
func yamlBounds(data []byte, o Options) error {
	if most := o.maxBytes(MaxYAMLBytes); len(data) > most {
		return &Error{Line: 1, Reason: fmt.Sprintf("%d bytes, the most is %d", len(data), most)}
	}
	if bytes.HasPrefix(data, []byte("\xef\xbb\xbf")) {
		return &Error{Line: 1, Reason: "starts with a byte-order mark"}
	}
	if !utf8.Valid(data) {
		return newError(data, invalidAt(data), "invalid UTF-8")
	}
	most := o.MaxNodes
	if most <= 0 {
		most = DefaultMaxNodes
	}
	starts := 0
	for i, c := range data {
		switch c {
		case ',', '[', '{', ':', '\n':
			starts++
		case '-', '?':
			if i+1 < len(data) && data[i+1] == ' ' {
				starts++
			}
		case '%':
			if i == 0 || data[i-1] == '\n' {
				return newError(data, i, "a directive")
			}
		}
		if starts > most {
			return newError(data, i, fmt.Sprintf("more than %d nodes", most))
		}
	}
	return nil
}

var (
	yamlLine = regexp.MustCompile(`^yaml: line (\d+): `)
	decimal  = regexp.MustCompile(`^[-+]?(0|[1-9][0-9]*)$`)
	float    = regexp.MustCompile(`^[-+]?(0|[1-9][0-9]*)?(\.[0-9]*)?([eE][-+]?[0-9]+)?$`)
)

// yamlError keeps the line of what the parser said. Its text names syntax, never
// a value from the document.
func yamlError(err error) error {
	text := err.Error()
	line := 1
	if m := yamlLine.FindStringSubmatch(text); m != nil {
		line, _ = strconv.Atoi(m[1])
		text = text[len(m[0]):]
	}
	return &Error{Offset: -1, Line: max(line, 1), Reason: "not YAML: " + clip(text)}
}

func plainNode(n *yaml.Node, depth, most int) error {
	refuse := func(reason string) error { return &Error{Offset: -1, Line: n.Line, Reason: reason} }
	switch {
	case n.Kind == yaml.AliasNode:
		return refuse("an alias: write the value out")
	case n.Anchor != "":
		return refuse("an anchor: write the value out")
	case n.Style&yaml.TaggedStyle != 0:
		return refuse("a tag")
	case depth > most+1:
		return refuse(fmt.Sprintf("more than %d levels deep", most))
	}
	switch n.Kind {
	case yaml.ScalarNode:
		return plainScalar(n, refuse)
	case yaml.MappingNode:
		seen := make(map[string]int, len(n.Content)/2)
		for i := 0; i < len(n.Content); i += 2 {
			key := n.Content[i]
			if key.Kind != yaml.ScalarNode {
				return &Error{Offset: -1, Line: key.Line, Reason: "a key that is not a plain word"}
			}
			if key.Tag == "!!merge" {
				return &Error{Offset: -1, Line: key.Line, Reason: "a merge key: write the values out"}
			}
			if line, ok := seen[key.Value]; ok {
				return &Error{Offset: -1, Line: key.Line, Reason: fmt.Sprintf("duplicate key %q, first on line %d", clip(key.Value), line)}
			}
			seen[key.Value] = key.Line
		}
	}
	for _, c := range n.Content {
		if err := plainNode(c, depth+1, most); err != nil {
			return err
		}
	}
	return nil
}

// plainScalar refuses spellings that YAML 1.1 and 1.2 read as different numbers
// (0777, 0o17, 1_000) and those that are no JSON value (.nan, .inf).
func plainScalar(n *yaml.Node, refuse func(string) error) error {
	switch n.Tag {
	case "!!int":
		if !decimal.MatchString(n.Value) {
			return refuse("a number that is not decimal: write it in decimal, or in quotes if it is text")
		}
		if _, err := strconv.ParseInt(n.Value, 10, 64); err != nil {
			return refuse("an integer of more than 64 bits")
		}
	case "!!float":
		if !float.MatchString(n.Value) {
			return refuse("a number that is not decimal: write it in decimal, or in quotes if it is text")
		}
		if _, err := strconv.ParseFloat(n.Value, 64); err != nil {
			return refuse("a number too large for 64-bit floating point")
		}
	case "!!binary", "!!set", "!!omap":
		return refuse("a tag")
	}
	return nil
}

// UnknownKey returns an *Error for the first key of mapping that is not in
// known, with the line and the nearest known key, or nil.
func UnknownKey(mapping *yaml.Node, known []string) error {
	if mapping == nil || mapping.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i < len(mapping.Content); i += 2 {
		key := mapping.Content[i]
		found := false
		for _, k := range known {
			found = found || k == key.Value
		}
		if !found {
			return &Error{Offset: -1, Line: key.Line, Reason: Unknown("key", key.Value, known)}
		}
	}
	return nil
}
