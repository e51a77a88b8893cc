package strict

import (
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"sync"
)

// shape is what Unmarshal needs to know of a type: which keys its structs take.
// nil stands for a type with no say in its keys.
type shape struct {
	fields map[string]*shape // exact key names; nil when this is no struct
	folded map[string]string // folded name to exact name
	names  []string
	each   *shape // of list and map members
}

func (sh *shape) elem() *shape {
	if sh == nil {
		return nil
	}
	return sh.each
}

// field returns the shape of the value under key, or a reason to refuse it.
func (sh *shape) field(key []byte, known bool) (*shape, string) {
	if sh == nil {
		return nil, ""
	}
	if sh.fields == nil {
		return sh.each, ""
	}
	if inner, ok := sh.fields[string(key)]; ok {
		return inner, ""
	}
	if exact, ok := sh.folded[fold(key)]; ok {
		return nil, fmt.Sprintf("key %q must be spelled %q", clip(string(key)), exact)
	}
	if known {
		return nil, Unknown("key", string(key), sh.names)
	}
	return nil, ""
}

var shapes sync.Map // reflect.Type to *shape

func shapeOf(t reflect.Type) *shape {
	if sh, ok := shapes.Load(t); ok {
		return sh.(*shape)
	}
	sh := buildShape(t, map[reflect.Type]*shape{})
	shapes.Store(t, sh)
	return sh
}

var (
	jsonUnmarshaler = reflect.TypeFor[json.Unmarshaler]()
	textUnmarshaler = reflect.TypeFor[encoding.TextUnmarshaler]()
)

// buildShape follows recursive types by the map of shapes under way.
func buildShape(t reflect.Type, open map[reflect.Type]*shape) *shape {
	for {
		if t.Kind() != reflect.Pointer {
			if p := reflect.PointerTo(t); p.Implements(jsonUnmarshaler) || p.Implements(textUnmarshaler) {
				return nil // it reads its own keys
			}
			break
		}
		t = t.Elem()
	}
	if sh, ok := open[t]; ok {
		return sh
	}
	sh := &shape{}
	open[t] = sh
	switch t.Kind() {
	case reflect.Slice, reflect.Array, reflect.Map:
		sh.each = buildShape(t.Elem(), open)
	case reflect.Struct:
		sh.fields, sh.folded = map[string]*shape{}, map[string]string{}
		for _, f := range reflect.VisibleFields(t) {
			name, ok := jsonName(f)
			if !ok {
				continue
			}
			sh.fields[name] = buildShape(f.Type, open)
			sh.folded[fold([]byte(name))] = name
			sh.names = append(sh.names, name)
		}
	default:
		return nil
	}
	return sh
}

func jsonName(f reflect.StructField) (string, bool) {
	tag := f.Tag.Get("json")
	name, _, _ := strings.Cut(tag, ",")
	switch {
	case tag == "-" || !f.IsExported():
		return "", false
	case name != "":
		return name, true
	case f.Anonymous:
		return "", false // its fields are listed on their own
	}
	return f.Name, true
}
