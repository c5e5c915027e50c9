package svc

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

const (
	// deepest is how many levels of lists and objects there may be.
	deepest = 100
	// maxInteger is what every reader of JSON has exactly (RFC 8259, section 6).
	maxInteger = 1<<53 - 1
)

var errNoJSON = errors.New("svc: no JSON")

// escapes finds each escape of a text, those of a surrogate pair as one.
var escapes = regexp.MustCompile(`\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|.)`)

// parsed is the value of a text of JSON in UTF-8: maps by exact names, of two equal ones the last, and numbers as
// json.Number. Anything else is an error, such as half of a surrogate pair, and what is nested deeper than deepest.
func parsed(text []byte) (any, error) {
	if !utf8.Valid(text) {
		return nil, errNoJSON
	}
	for _, one := range escapes.FindAll(text, -1) {
		if len(one) == len(`\ud800`) && (one[2] == 'd' || one[2] == 'D') && one[3] > '7' {
			return nil, errNoJSON
		}
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return nil, err
	}
	if _, err := decoder.Token(); err != io.EOF {
		return nil, errNoJSON
	}
	if depth(value) > deepest {
		return nil, errNoJSON
	}
	return value, nil
}

func depth(value any) int {
	inner := -1
	switch value := value.(type) {
	case map[string]any:
		inner = 0
		for _, one := range value {
			inner = max(inner, depth(one))
		}
	case []any:
		inner = 0
		for _, one := range value {
			inner = max(inner, depth(one))
		}
	}
	return inner + 1
}

// object is the value of a text where it is one.
func object(text []byte) (fields, bool) {
	value, err := parsed(text)
	found, isObject := value.(map[string]any)
	return found, isObject && err == nil
}

// fields are those of an object.
type fields map[string]any

// text is a field that is a text which is not empty.
func (f fields) text(name string) (string, bool) {
	found, isText := f[name].(string)
	return found, isText && found != ""
}

// optional is a text, nil where it is left out or null.
func (f fields) optional(name string) (*string, bool) {
	if f[name] == nil {
		return nil, true
	}
	found, isText := f[name].(string)
	return &found, isText
}

// integer is a field that is a whole number, in any notation.
func (f fields) integer(name string) (int64, bool) {
	number, isNumber := f[name].(json.Number)
	if !isNumber {
		return 0, false
	}
	return whole(number)
}

func whole(number json.Number) (int64, bool) {
	if found, err := strconv.ParseInt(number.String(), 10, 64); err == nil {
		return found, found >= -maxInteger && found <= maxInteger
	}
	found, err := number.Float64()
	isWhole := err == nil && found == math.Trunc(found) && math.Abs(found) <= maxInteger
	return int64(found), isWhole
}

// fill puts a value into what it is decoded to, as json.Unmarshal does, but by exact names, and leaves out what is of
// another kind.
func fill(target reflect.Value, value any) {
	if value == nil {
		return
	}
	if target.CanAddr() {
		if own, isOwn := target.Addr().Interface().(json.Unmarshaler); isOwn {
			if text, err := json.Marshal(value); err == nil {
				_ = own.UnmarshalJSON(text)
			}
			return
		}
	}
	switch target.Kind() {
	case reflect.Pointer:
		made := reflect.New(target.Type().Elem())
		if isOf(made.Elem().Kind(), value) {
			fill(made.Elem(), value)
			target.Set(made)
		}
	case reflect.Struct:
		if object, isObject := value.(map[string]any); isObject {
			fillStruct(target, object)
		}
	case reflect.Slice:
		if list, isList := value.([]any); isList {
			made := reflect.MakeSlice(target.Type(), len(list), len(list))
			for i, one := range list {
				fill(made.Index(i), one)
			}
			target.Set(made)
		}
	case reflect.Map:
		if object, isObject := value.(map[string]any); isObject {
			made := reflect.MakeMapWithSize(target.Type(), len(object))
			for name, one := range object {
				element := reflect.New(target.Type().Elem()).Elem()
				fill(element, one)
				made.SetMapIndex(reflect.ValueOf(name).Convert(target.Type().Key()), element)
			}
			target.Set(made)
		}
	case reflect.Interface:
		target.Set(reflect.ValueOf(plain(value)))
	default:
		fillPlain(target, value)
	}
}

func fillStruct(target reflect.Value, object map[string]any) {
	for i := range target.NumField() {
		field := target.Type().Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case field.Anonymous && name == "":
			fill(target.Field(i), object)
		case field.IsExported() && name != "-":
			if name == "" {
				name = field.Name
			}
			fill(target.Field(i), object[name])
		}
	}
}

func fillPlain(target reflect.Value, value any) {
	switch value := value.(type) {
	case string:
		if target.Kind() == reflect.String {
			target.SetString(value)
		}
	case bool:
		if target.Kind() == reflect.Bool {
			target.SetBool(value)
		}
	case json.Number:
		float, err := value.Float64()
		integer, integerErr := value.Int64()
		if integerErr != nil {
			integer = int64(float)
		}
		switch {
		case target.CanInt() && !target.OverflowInt(integer):
			target.SetInt(integer)
		case target.CanFloat() && err == nil:
			target.SetFloat(float)
		}
	}
}

// isOf says whether a value may be decoded to a kind.
func isOf(kind reflect.Kind, value any) bool {
	switch value.(type) {
	case string:
		return kind == reflect.String || kind == reflect.Interface
	case bool:
		return kind == reflect.Bool || kind == reflect.Interface
	case json.Number:
		return kind >= reflect.Int && kind <= reflect.Float64 || kind == reflect.Interface
	case []any:
		return kind == reflect.Slice || kind == reflect.Interface
	}
	return kind == reflect.Struct || kind == reflect.Map || kind == reflect.Interface
}

// plain has numbers as float64, as json.Unmarshal has them where no kind is asked for.
func plain(value any) any {
	switch value := value.(type) {
	case json.Number:
		number, _ := value.Float64()
		return number
	case map[string]any:
		for name, one := range value {
			value[name] = plain(one)
		}
	case []any:
		for i, one := range value {
			value[i] = plain(one)
		}
	}
	return value
}
