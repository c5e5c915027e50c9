package svc

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

var atOnce = WithRetries(Retries{Attempts: 3})

// serving starts a service whose responses have these statuses, and then 200; it counts the requests.
func serving(t *testing.T, respond func(http.ResponseWriter, int)) (string, *atomic.Int32) {
	t.Helper()
	var count atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		respond(w, int(count.Add(1)))
	}))
	t.Cleanup(server.Close)
	return server.URL, &count
}

func made(t *testing.T, url string, options ...Option) *Client {
	t.Helper()
	client, err := New(url, "svc_sk_key", options...)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func TestACallIsRetriedOnlyWhereThatCanHelpAndIsSafe(t *testing.T) {
	health := func(c *Client) error { _, err := c.GetHealth(t.Context()); return err }
	test := func(c *Client) error { _, err := c.TestWebhook(t.Context(), "org", "whk"); return err }
	for _, one := range []struct {
		name     string
		call     func(*Client) error
		statuses []int
		attempts int32
	}{
		{"a read after 503", health, []int{503}, 2},
		{"a read after 500 and 502", health, []int{500, 502}, 3},
		{"a change after 429", test, []int{429}, 2},
		{"a change after 503", test, []int{503}, 1},
		{"a read after 404", health, []int{404}, 1},
		{"a read after 302", health, []int{302}, 1},
		{"a read after three 503", health, []int{503, 503, 503}, 3},
	} {
		t.Run(one.name, func(t *testing.T) {
			url, count := serving(t, func(w http.ResponseWriter, number int) {
				if number <= len(one.statuses) {
					w.Header().Set("Location", "/")
					w.WriteHeader(one.statuses[number-1])
				}
				_, _ = io.WriteString(w, "{}")
			})
			err := one.call(made(t, url, atOnce))
			var refused *APIError
			if isRefused := errors.As(err, &refused); isRefused != (int(one.attempts) <= len(one.statuses)) {
				t.Errorf("error %v", err)
			}
			if refused != nil && refused.Code != "unexpected_response" {
				t.Errorf("code %s", refused.Code)
			}
			if count.Load() != one.attempts {
				t.Errorf("%d attempts", count.Load())
			}
		})
	}
}

func TestARefusalHasTheFieldsOfTheService(t *testing.T) {
	url, _ := serving(t, func(w http.ResponseWriter, _ int) {
		w.Header().Set("X-Request-Id", "r1")
		w.Header().Set("Retry-After", "3600")
		w.WriteHeader(429)
		_, _ = io.WriteString(w, `{"error":{"code":"rate_limited","message":"Later.","status":429,
			"details":[{"field":"a","issue":"too_long","location":"body"}]},"request_id":"r1"}`)
	})
	var refused *APIError
	if _, err := made(t, url).GetHealth(t.Context()); !errors.As(err, &refused) {
		t.Fatal(err)
	}
	if refused.Status != 429 || refused.Code != "rate_limited" || refused.Message != "Later." || refused.RequestID != "r1" ||
		refused.RetryAfter != time.Hour || len(refused.Details) != 1 || refused.Details[0].Issue != "too_long" {
		t.Errorf("%+v", refused)
	}
	if refused.Error() != "429 rate_limited: Later. (a: too_long)" {
		t.Error(refused)
	}
}

func TestWhatIsNoResponseOfTheServiceIsAnError(t *testing.T) {
	for _, text := range []string{"hello", "", "[1]", `{"status": 1`} {
		url, _ := serving(t, func(w http.ResponseWriter, _ int) { _, _ = io.WriteString(w, text) })
		var refused *APIError
		if _, err := made(t, url).GetHealth(t.Context()); !errors.As(err, &refused) || refused.Code != "unexpected_response" {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestALostConnectionIsTriedAgainWithTheSameKey(t *testing.T) {
	keys := map[string]bool{}
	url, count := serving(t, func(w http.ResponseWriter, number int) {
		if number == 1 {
			panic(http.ErrAbortHandler)
		}
		_, _ = io.WriteString(w, `{"request_id":"r1","duplicate":true}`)
	})
	client := made(t, url, atOnce, WithTransport(keeping(keys)))
	answer, err := client.Identify(t.Context(), IdentifyBody{}, IdentifyHeaders{})
	if err != nil || answer.RequestID != "r1" || count.Load() != 2 || len(keys) != 1 {
		t.Error(answer, err, count.Load(), keys)
	}
	for key := range keys {
		if !strings.HasSuffix(key, " full") {
			t.Error(key, "does not ask for the whole response of the first attempt")
		}
	}
	url, count = serving(t, func(http.ResponseWriter, int) { panic(http.ErrAbortHandler) })
	_, err = made(t, url, atOnce).TestWebhook(t.Context(), "org", "whk")
	var lost *UnreachableError
	if !errors.As(err, &lost) || !lost.WasSent || count.Load() != 1 {
		t.Error(err, count.Load())
	}
}

func TestAVisitorCanPutNothingIntoACallThatIsNotSent(t *testing.T) {
	url, _ := serving(t, func(w http.ResponseWriter, _ int) { _, _ = io.WriteString(w, "{}") })
	keys := map[string]bool{}
	for _, key := range []string{"50% M\u00fc \u20ac\r\nx: y", "M\u00f6"} {
		_, err := made(t, url, WithTransport(keeping(keys))).Identify(t.Context(), IdentifyBody{}, IdentifyHeaders{IdempotencyKey: key})
		if err != nil {
			t.Error(err)
		}
	}
	if !keys["50% M%C3%BC %E2%82%AC%0D%0Ax: y full"] || !keys["M%C3%B6 full"] {
		t.Error(keys)
	}
}

func TestAClientIsPrintedWithoutItsKey(t *testing.T) {
	client := made(t, "https://id.shop.example")
	for _, verb := range []string{"%v", "%+v", "%#v", "%s"} {
		if said := fmt.Sprintf(verb, client); strings.Contains(said, "svc_sk_key") {
			t.Error(verb, said)
		}
	}
}

type keeping map[string]bool

func (k keeping) RoundTrip(request *http.Request) (*http.Response, error) {
	k[request.Header.Get("Idempotency-Key")+" "+request.Header.Get("X-Svc-Replay")] = true
	return http.DefaultTransport.RoundTrip(request)
}

func TestWhereThereIsNoConnectionNothingWasSent(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	_, err := made(t, server.URL, atOnce).TestWebhook(t.Context(), "org", "whk")
	var lost *UnreachableError
	if !errors.As(err, &lost) || lost.WasSent || !strings.HasPrefix(err.Error(), "no response from "+server.URL+": ") {
		t.Error(err)
	}
}

func TestABodyThatNeverEndsIsTooLate(t *testing.T) {
	release := make(chan struct{})
	url, count := serving(t, func(w http.ResponseWriter, _ int) {
		_, _ = io.WriteString(w, "{")
		w.(http.Flusher).Flush()
		<-release
	})
	defer close(release)
	client := made(t, url, WithTimeout(50*time.Millisecond), WithRetries(Retries{Attempts: 2}))
	_, err := client.GetHealth(t.Context())
	var lost *UnreachableError
	if !errors.As(err, &lost) || !errors.Is(err, context.DeadlineExceeded) || !lost.WasSent || count.Load() != 2 {
		t.Error(err, count.Load())
	}
}

func TestACanceledContextEndsTheWait(t *testing.T) {
	url, count := serving(t, func(w http.ResponseWriter, _ int) { w.WriteHeader(503) })
	ctx, cancel := context.WithCancel(t.Context())
	client := made(t, url, WithRetries(Retries{Attempts: 3, FirstWait: time.Hour, LongestWait: time.Hour}))
	done := make(chan error)
	go func() { _, err := client.GetHealth(ctx); done <- err }()
	for count.Load() == 0 {
		time.Sleep(time.Millisecond)
	}
	cancel()
	if err := <-done; err == nil || count.Load() != 1 {
		t.Error(err, count.Load())
	}
}

func TestAKeyFromAFileWorksAndAWrongOneIsNotRepeated(t *testing.T) {
	var path, key string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path, key = r.URL.Path, r.Header.Get("X-Api-Key")
		_, _ = io.WriteString(w, "{}")
	}))
	defer server.Close()
	client, err := New(server.URL+"/api/v1/", " svc_sk_key\n")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.GetHealth(t.Context()); err != nil || path != "/api/v1/healthz" || key != "svc_sk_key" {
		t.Error(err, path, key)
	}
	for _, wrong := range []string{"", "svc_sk_one\nsvc_sk_two", "svc_sk_é"} {
		if _, err := New(server.URL, wrong); err == nil || strings.Contains(err.Error(), "sk_o") {
			t.Error(err)
		}
	}
	if _, err := New("id.shop.example", "svc_sk_key"); err == nil || !strings.Contains(err.Error(), `"id.shop.example"`) {
		t.Error(err)
	}
}

func TestPagesOfTheFeedAndOfChangesAreLongUnlessTheCallerSaysSo(t *testing.T) {
	var limits []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		limits = append(limits, r.URL.Query().Get("limit"))
		_, _ = io.WriteString(w, `{"rows": [], "changes": [], "next_cursor": "c", "has_more": false}`)
	}))
	defer server.Close()
	client := made(t, server.URL)
	for _, limit := range []int64{0, 7} {
		for range client.IterateFeed(t.Context(), ListEventsQuery{Limit: limit}, false) {
		}
		for range client.IterateChanges(t.Context(), ListChangesQuery{Limit: limit}, false) {
		}
	}
	if !slices.Equal(limits, []string{"200", "200", "7", "7"}) {
		t.Error(limits)
	}
}

func TestAnIdentifierStaysInItsPlace(t *testing.T) {
	var seen string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen = r.URL.EscapedPath()
		_, _ = io.WriteString(w, "{}")
	}))
	defer server.Close()
	client := made(t, server.URL)
	for _, one := range []string{"", ".", ".."} {
		if err := client.DeleteWebhook(t.Context(), "org", one); err == nil || !strings.Contains(err.Error(), "not an identifier") {
			t.Error(err)
		}
	}
	for text, isRefused := range map[string]bool{"caf\xe9": true, "\ufffd \\ufffd": false} {
		_, err := client.CreateAccountNote(t.Context(), "org", "a", NewNoteBody{Text: text})
		if isRefused != (err != nil && strings.Contains(err.Error(), "not UTF-8")) {
			t.Errorf("%q %v", text, err)
		}
	}
	if _, err := client.ListAccountNotes(t.Context(), "{}", "a/../b?c=d#e 1"); err != nil {
		t.Fatal(err)
	}
	if seen != "/api/v1/management/organizations/%7B%7D/accounts/a%2F..%2Fb%3Fc=d%23e%201/notes" {
		t.Error(seen)
	}
}

func TestAFieldIsLeftOutOrNullOrAValue(t *testing.T) {
	text, err := json.Marshal(UpdateEventBody{AccountID: Value("a"), Tag: Null[string]()})
	if err != nil || string(text) != `{"account_id":"a","tag":null}` {
		t.Error(string(text), err)
	}
	var read UpdateEventBody
	if err := json.Unmarshal(text, &read); err != nil {
		t.Fatal(err)
	}
	account, isThere := read.AccountID.Get()
	if _, isTag := read.Tag.Get(); account != "a" || !isThere || isTag || read.Tag.IsZero() || !read.Action.IsZero() {
		t.Errorf("%+v", read)
	}
}

func TestWhatIsNoAddressIsAnErrorAndNoneIsNotCompared(t *testing.T) {
	event := fields{
		"request_id": requestID, "occurred_at": time.Now().Format(time.RFC3339Nano), "ip_address": "127.0.0.1", "platform": "web",
		"visitor_confidence": json.Number("100"), "identifiable": true,
	}
	for _, ip := range []string{"nowhere", "127.0.0.1:80"} {
		if _, _, err := problemsWith(event, Action{IP: ip}, requestID); err == nil {
			t.Error(ip)
		}
	}
	for _, ip := range []string{"", AnyIP} {
		if _, problems, err := problemsWith(event, Action{IP: ip}, requestID); err != nil || len(problems) > 0 {
			t.Error(ip, problems, err)
		}
	}
}

func TestKeysAreReadOnceAnHourAndForUnknownOnesOnceAMinute(t *testing.T) {
	header := func(kid string) string {
		return base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"EdDSA","typ":"svc-verdict+jwt","kid":"`+kid+`"}`)) + ".e30.AA"
	}
	ring, now := keyRing{}, time.Now()
	if !ring.mustBeRead(header("a"), now) || ring.mustBeRead("made up", now) {
		t.Error("before the first reading")
	}
	key := map[string]any{"kty": "OKP", "crv": "Ed25519", "kid": "a", "x": strings.Repeat("A", 43)}
	if err := ring.put([]any{key, map[string]any{"kty": "OKP", "crv": "Ed25519", "kid": "b", "x": "short"}}, now); err != nil {
		t.Fatal(err)
	}
	for _, one := range []struct {
		kid   string
		after time.Duration
		must  bool
	}{{"a", 59 * time.Minute, false}, {"a", time.Hour, true}, {"b", 59 * time.Second, false}, {"b", time.Minute, true}} {
		if ring.mustBeRead(header(one.kid), now.Add(one.after)) != one.must {
			t.Error(one)
		}
	}
}
