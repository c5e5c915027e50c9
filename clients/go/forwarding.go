package svc

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

const maxVisitorHeaders = 2_048

// VisitorHeaders returns IdentifyHeaders.VisitorHeaders, from the headers of a visitor's request: its accept-language,
// sec-ch-ua... and sec-fetch-.... A header with which it would be longer than the service takes is left out; no browser
// sends such.
//
// Without it the service cannot tell a browser from a program that copied a report.
func VisitorHeaders(header http.Header) string {
	made := ""
	for _, name := range slices.Sorted(maps.Keys(header)) {
		lowered := strings.ToLower(name)
		isPassedOn := lowered == "accept-language" || strings.HasPrefix(lowered, "sec-ch-ua") ||
			strings.HasPrefix(lowered, "sec-fetch-")
		if !isPassedOn {
			continue
		}
		member := quoted(lowered) + ":" + quoted(strings.Join(header[name], ", "))
		if made != "" {
			member = "," + member
		}
		if len(made)+len(member)+len("{}") <= maxVisitorHeaders {
			made += member
		}
	}
	return "{" + made + "}"
}

// quoted is a text as JSON in ASCII, as headers are. Bytes that are no UTF-8 are Latin-1.
func quoted(text string) string {
	characters := []rune(text)
	if !utf8.ValidString(text) {
		characters = characters[:0]
		for _, one := range []byte(text) {
			characters = append(characters, rune(one))
		}
	}
	var made strings.Builder
	made.WriteByte('"')
	for _, unit := range utf16.Encode(characters) {
		switch {
		case unit == '"' || unit == '\\':
			made.WriteByte('\\')
			made.WriteByte(byte(unit))
		case unit < 0x20 || unit > 0x7e:
			fmt.Fprintf(&made, `\u%04x`, unit)
		default:
			made.WriteByte(byte(unit))
		}
	}
	made.WriteByte('"')
	return made.String()
}
