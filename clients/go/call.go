package svc

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"strings"
)

// Call is what an operation asks of the service. The methods of Client make it; one of your own reaches what this
// version of the library does not know.
type Call struct {
	Method string
	// Path below /api/v1, with {} for each of Segments.
	Path     string
	Segments []string
	Query    map[string]string
	Headers  map[string]string
	// Body is encoded as JSON; nil for none.
	Body any
	// IsRepeatable says whether sending it twice does no more than sending it once.
	IsRepeatable bool
}

// path has the segments in their places. Those that would lead to another path are an error.
func (c Call) path() (string, error) {
	made := c.Path
	for _, segment := range c.Segments {
		if segment == "" || segment == "." || segment == ".." {
			return "", fmt.Errorf("svc: %q is not an identifier", segment)
		}
		// PathEscape escapes brackets, so that no segment is a place for the next one.
		made = strings.Replace(made, "{}", url.PathEscape(segment), 1)
	}
	return made, nil
}

// given has what is sent of pairs of a name and a value: what is zero is left out.
func given(pairs ...any) map[string]string {
	sent := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		switch value := pairs[i+1].(type) {
		case string:
			if value != "" {
				sent[pairs[i].(string)] = value
			}
		case int64:
			if value != 0 {
				sent[pairs[i].(string)] = strconv.FormatInt(value, 10)
			}
		case bool:
			if value {
				sent[pairs[i].(string)] = "true"
			}
		default:
			panic(fmt.Sprintf("svc: %v cannot be sent as %T", pairs[i], value))
		}
	}
	return sent
}

// printable is a value of a header with what is not of ASCII percent-encoded, so that each text has a value of its own.
func printable(value string) string {
	var made strings.Builder
	for _, one := range []byte(value) {
		if one < ' ' || one > '~' {
			fmt.Fprintf(&made, "%%%02X", one)
		} else {
			made.WriteByte(one)
		}
	}
	return made.String()
}

// orNewKey is the key, or a random one, so that the attempts of one call are one identification.
func orNewKey(key string) string {
	if key != "" {
		return key
	}
	return rand.Text()
}

// Optional is a field of a request that is left out, a value of Value, or Null. The zero one is left out.
type Optional[T any] struct {
	value  *T
	isSent bool
}

// Value is a field that is sent.
func Value[T any](value T) Optional[T] { return Optional[T]{value: &value, isSent: true} }

// Null is a field that is sent as null: it removes what is stored.
func Null[T any]() Optional[T] { return Optional[T]{isSent: true} }

// Get returns the value, and whether there is one.
func (n Optional[T]) Get() (T, bool) {
	if n.value == nil {
		var none T
		return none, false
	}
	return *n.value, true
}

// IsZero says whether the field is left out.
func (n Optional[T]) IsZero() bool { return !n.isSent }

// MarshalJSON encodes the value, or null.
func (n Optional[T]) MarshalJSON() ([]byte, error) { return json.Marshal(n.value) }

// UnmarshalJSON decodes a value, or null.
func (n *Optional[T]) UnmarshalJSON(text []byte) error {
	n.isSent = true
	return json.Unmarshal(text, &n.value)
}
