package main

import (
	"fmt"
	"strings"

	"beeyard"
	"beeyard/internal/strict"

	"go.yaml.in/yaml/v3"
)

// flatten turns the file's nested mappings into dotted keys, refuses a key
// that no setting has, with the nearest that one has, and checks each value.
func flatten(n *yaml.Node, prefix string, into map[string]value, path string) error {
	at := func(n *yaml.Node) string { return fmt.Sprintf("%s:%d", path, n.Line) }
	if n.Kind != yaml.MappingNode {
		return beeyard.Because(beeyard.ErrUsage, at(n)+": a mapping of settings is wanted")
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		key := prefix + k.Value
		if group(key) {
			if err := flatten(v, key+".", into, path); err != nil {
				return err
			}
			continue
		}
		s, ok := findSetting(key)
		if !ok {
			return beeyard.Because(beeyard.ErrUsage, at(k)+": "+strict.Unknown("setting", key, settingKeys(prefix)))
		}
		text, err := scalarText(s, v)
		if err == nil {
			err = s.check(text)
		}
		if err != nil {
			return beeyard.Because(beeyard.ErrUsage, fmt.Sprintf("%s: %s: %s", at(v), key, err))
		}
		into[key] = value{text, at(k)}
	}
	return nil
}

func scalarText(s setting, v *yaml.Node) (string, error) {
	switch v.Kind {
	case yaml.ScalarNode:
		if v.Tag == "!!null" {
			return "", nil
		}
		return v.Value, nil
	case yaml.SequenceNode:
		if s.kind != "list" {
			break
		}
		var parts []string
		for _, e := range v.Content {
			if e.Kind != yaml.ScalarNode || strings.Contains(e.Value, ",") {
				return "", beeyard.Because(beeyard.ErrUsage, "a list of plain words is wanted")
			}
			parts = append(parts, e.Value)
		}
		return strings.Join(parts, ","), nil
	}
	return "", beeyard.Because(beeyard.ErrUsage, "it must be a "+s.kind)
}

// group reports whether settings exist below key.
func group(key string) bool {
	for _, s := range settings() {
		if strings.HasPrefix(s.key, key+".") {
			return true
		}
	}
	return false
}

// settingKeys are the names that may stand below prefix, groups too: a slip in
// the name of a group is near to no setting's whole key.
func settingKeys(prefix string) []string {
	var keys []string
	for _, s := range settings() {
		rest, ok := strings.CutPrefix(s.key, prefix)
		if !ok {
			continue
		}
		name, _, _ := strings.Cut(rest, ".")
		keys = append(keys, prefix+name)
	}
	return keys
}
