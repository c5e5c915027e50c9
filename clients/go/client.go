package svc

import (
	"bytes"
	"cmp"
	"compress/flate"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"reflect"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	base = "/api/v1"
	// maxBytes is of the body of a response, unpacked.
	maxBytes = 16 << 20
	// pageLimit is of the feed and of changes, where the caller gives none.
	pageLimit = 200
)

var (
	keyForm       = regexp.MustCompile(`^[!-~]+$`)
	requestIDForm = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)
)

// Client calls the service with one key. Goroutines may share one.
type Client struct {
	baseURL, apiKey string
	timeout         time.Duration
	deadline        time.Duration
	retries         Retries
	http            *http.Client
	mutex           sync.Mutex
	rings           map[string]*keyRing
}

// String is without the key, which fmt would print.
func (c *Client) String() string { return "svc.Client" }

// GoString is that of String, for %#v.
func (c *Client) GoString() string { return c.String() }

// Option changes how a Client sends.
type Option func(*Client)

// WithTimeout sets the time limit of each attempt: 5 seconds unless set.
func WithTimeout(timeout time.Duration) Option { return func(c *Client) { c.timeout = timeout } }

// WithDeadline sets the time limit of all attempts of a call and the waits between them: 15 seconds unless set.
func WithDeadline(deadline time.Duration) Option { return func(c *Client) { c.deadline = deadline } }

// WithRetries takes the place of DefaultRetries.
func WithRetries(retries Retries) Option { return func(c *Client) { c.retries = retries } }

// WithTransport takes the place of http.DefaultTransport: for a proxy or an authority of your own.
func WithTransport(transport http.RoundTripper) Option {
	return func(c *Client) { c.http.Transport = transport }
}

// New makes a client. baseURL is where the service is, without /api/v1. It returns an error for what is no address or
// key; the error does not repeat the key.
func New(baseURL, apiKey string, options ...Option) (*Client, error) {
	address, err := url.Parse(baseURL)
	if err != nil || address.Host == "" || (address.Scheme != "https" && address.Scheme != "http") {
		return nil, fmt.Errorf(
			"svc: baseURL is the address of the service, such as https://id.shop.example, not %q", baseURL)
	}
	key := strings.TrimSpace(apiKey)
	if !keyForm.MatchString(key) {
		return nil, errors.New("svc: apiKey is empty, or has characters that no key has: svc_sk_... as it was issued")
	}
	client := &Client{
		baseURL: strings.TrimSuffix(strings.TrimRight(baseURL, "/"), base),
		apiKey:  key,
		timeout: 5 * time.Second, deadline: 15 * time.Second,
		retries: DefaultRetries(),
		http: &http.Client{
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		rings: map[string]*keyRing{},
	}
	for _, option := range options {
		option(client)
	}
	return client, nil
}

// FirstUse stores a request id and says whether it was new: a unique key in your database.
type FirstUse func(ctx context.Context, requestID string) (bool, error)

// Check reads an event with a secret key, checks that it belongs to the action that is being served, and decides: act on
// Decision of what comes back, and log its Reasons.
//
// requestID is from the visitor's client: anything at all. isFirstUse is called last, for an event that counts for this
// action, at once or after a second factor. The error is an *APIError, an *UnreachableError, that of isFirstUse, or says that
// action.IP is no address: decide beforehand what goes on without a verdict.
func (c *Client) Check(ctx context.Context, requestID string, action Action, isFirstUse FirstUse) (Checked, error) {
	if !requestIDForm.MatchString(requestID) {
		return Checked{Problem: NotFound}, nil
	}
	var read fields
	err := c.Send(ctx, Call{
		Method: http.MethodGet, Path: "/events/{}", Segments: []string{requestID}, IsRepeatable: true,
	}, &read)
	var refused *APIError
	if errors.As(err, &refused) && (refused.Code == "event_not_found" || refused.Code == "invalid_request_id") {
		return Checked{Problem: NotFound}, nil
	}
	if err != nil {
		return Checked{}, err
	}
	event, problems, err := problemsWith(read, action, requestID)
	if err != nil {
		return Checked{}, err
	}
	if mayCount(problems) {
		isFirst, err := isFirstUse(ctx, requestID)
		if err != nil {
			return Checked{}, err
		}
		if !isFirst {
			problems = []Problem{UsedBefore}
		}
	}
	return checked(problems, event, action.AllowUnknown), nil
}

func checked(problems []Problem, event *EventDetailBody, allowUnknown bool) Checked {
	return Checked{Problem: firstOf(problems), Event: event, problems: problems, allowUnknown: allowUnknown}
}

// CheckVerdict checks a signed verdict that the visitor's client handed over: its signature, age, environment, and that
// it belongs to the action that is being served. It asks the service for the organization's keys once an hour, and for
// nothing else; isFirstUse and the errors are those of Check.
func (c *Client) CheckVerdict(
	ctx context.Context, token string, expected ExpectedVerdict, isFirstUse FirstUse,
) (CheckedVerdict, error) {
	ring := c.ringOf(expected.OrganizationID)
	if ring.mustBeRead(token, time.Now()) {
		var read fields
		err := c.Send(ctx, Call{
			Method: http.MethodGet, Path: "/organizations/{}/verdict-keys", Segments: []string{expected.OrganizationID},
			IsRepeatable: true,
		}, &read)
		if err == nil {
			err = ring.put(read["keys"], time.Now())
		}
		if err != nil {
			return CheckedVerdict{}, err
		}
	}
	verdict, problems, err := ring.check(token, expected)
	if err != nil {
		return CheckedVerdict{}, err
	}
	if mayCount(problems) {
		isFirst, err := isFirstUse(ctx, verdict.RequestID)
		if err != nil {
			return CheckedVerdict{}, err
		}
		if !isFirst {
			problems = []Problem{UsedBefore}
		}
	}
	return checkedVerdict(problems, verdict, expected.AllowUnknown), nil
}

func (c *Client) ringOf(organizationID string) *keyRing {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.rings[organizationID] == nil {
		c.rings[organizationID] = &keyRing{}
	}
	return c.rings[organizationID]
}

// IterateEvents returns every event of a list, newest first, page after page. It ends with the first error. An event that
// is corrupt in the store has RequestID and Error alone.
func (c *Client) IterateEvents(ctx context.Context, query ListEventsQuery) iter.Seq2[EventBody, error] {
	return func(yield func(EventBody, error) bool) {
		for {
			page, err := c.ListEvents(ctx, query)
			if err != nil {
				yield(EventBody{}, err)
				return
			}
			for _, row := range page.Rows {
				if !yield(row, nil) {
					return
				}
			}
			if page.NextCursor == nil {
				return
			}
			query.Cursor = *page.NextCursor
		}
	}
}

// IterateFeed returns the pages of the feed, oldest first: each event once, behind query.After or else from the oldest
// on. Store NextCursor of a page together with what you made of its rows, and begin with it as After. At the end it
// waits for a second and looks again, until ctx is done; without follow it ends. It ends with the first error, as for
// filters on what may change later: AccountID, Action, Tag and Label are a 422 (not_with_order).
func (c *Client) IterateFeed(ctx context.Context, query ListEventsQuery, follow bool) iter.Seq2[*EventsAnswer, error] {
	query.Order, query.Limit = "oldest", cmp.Or(query.Limit, pageLimit)
	return func(yield func(*EventsAnswer, error) bool) {
		for {
			page, err := c.ListEvents(ctx, query)
			if err != nil {
				yield(nil, err)
				return
			}
			if !yield(page, nil) || page.NextCursor == nil {
				return
			}
			query.After, query.From = *page.NextCursor, ""
			if page.HasMore != nil && *page.HasMore {
				continue
			}
			if !follow {
				return
			}
			if err := sleep(ctx, time.Second); err != nil {
				yield(nil, err)
				return
			}
		}
	}
}

// IterateChanges returns the pages of changes, oldest first: new events, updates and erasures, each once, behind
// query.After or else from the oldest on. Store NextCursor of a page together with what you made of its changes, and
// begin with it as After. At the end it waits for a second and looks again, until ctx is done; without follow it ends.
// It ends with the first error.
func (c *Client) IterateChanges(ctx context.Context, query ListChangesQuery, follow bool) iter.Seq2[*ChangesAnswer, error] {
	query.Limit = cmp.Or(query.Limit, pageLimit)
	return func(yield func(*ChangesAnswer, error) bool) {
		for {
			page, err := c.ListChanges(ctx, query)
			if err != nil {
				yield(nil, err)
				return
			}
			if !yield(page, nil) {
				return
			}
			query.After = page.NextCursor
			if page.HasMore {
				continue
			}
			if !follow {
				return
			}
			if err := sleep(ctx, time.Second); err != nil {
				yield(nil, err)
				return
			}
		}
	}
}

// Send sends a call, again where that can help and is safe, and decodes the object in the body of the response into what into
// points to; into may be nil. Fields are decoded by their exact names, and left out where they are of another kind. The
// error is an *APIError or an *UnreachableError, or says what of the call cannot be sent.
func (c *Client) Send(ctx context.Context, call Call, into any) error {
	end := time.Now().Add(c.deadline)
	for attempt := 1; ; attempt++ {
		err := c.attempt(ctx, call, min(c.timeout, time.Until(end)), into)
		if err == nil || ctx.Err() != nil {
			return err
		}
		wait, isOther := c.retries.wait(err, attempt, call.IsRepeatable, rand.Float64())
		if !isOther || wait >= time.Until(end) {
			return err
		}
		if sleep(ctx, wait) != nil {
			return err
		}
	}
}

// sleep waits; the error is that of a ctx that is done before.
func sleep(ctx context.Context, wait time.Duration) error {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

func (c *Client) attempt(ctx context.Context, call Call, limit time.Duration, into any) error {
	var isConnected atomic.Bool
	ctx, cancel := context.WithTimeout(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) { isConnected.Store(true) },
	}), limit)
	defer cancel()
	request, err := c.request(ctx, call)
	if err != nil {
		return err
	}
	response, err := c.http.Do(request)
	var text []byte
	if err == nil {
		defer response.Body.Close()
		text, err = io.ReadAll(io.LimitReader(response.Body, maxBytes+1))
		if isNotUnpacked(err) || len(text) > maxBytes {
			text, err = nil, nil
		}
	}
	if err != nil {
		var around *url.Error
		if errors.As(err, &around) {
			err = around.Err
		}
		address := request.URL.Scheme + "://" + request.URL.Host
		return &UnreachableError{WasSent: isConnected.Load() || response != nil, address: address, cause: err}
	}
	return read(response, text, into)
}

func (c *Client) request(ctx context.Context, call Call) (*http.Request, error) {
	path, err := call.path()
	if err != nil {
		return nil, err
	}
	var body io.Reader
	if call.Body != nil {
		text, err := json.Marshal(call.Body)
		if err != nil {
			return nil, fmt.Errorf("svc: the body cannot be sent: %w", err)
		}
		for _, one := range escapes.FindAll(text, -1) {
			if string(one) == `\ufffd` { // in the place of bytes; the character itself is not escaped
				return nil, errors.New("svc: the body cannot be sent: a text of it is not UTF-8")
			}
		}
		body = bytes.NewReader(text)
	}
	request, err := http.NewRequestWithContext(ctx, call.Method, c.baseURL+base+path, body)
	if err != nil {
		return nil, fmt.Errorf("svc: the request cannot be sent: %w", err)
	}
	query := url.Values{}
	for name, value := range call.Query {
		query.Set(name, value)
	}
	request.URL.RawQuery = query.Encode()
	request.Header.Set("User-Agent", "svc-client-go/"+Version)
	request.Header.Set("X-Api-Key", c.apiKey)
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	for name, value := range call.Headers {
		request.Header.Set(name, printable(value))
	}
	return request, nil
}

// isNotUnpacked says whether a body is not packed as its response says.
func isNotUnpacked(err error) bool {
	var corrupt flate.CorruptInputError
	return errors.Is(err, gzip.ErrHeader) || errors.Is(err, gzip.ErrChecksum) || errors.As(err, &corrupt)
}

// read decodes the object in the body of a response; any but a success is an error.
func read(response *http.Response, text []byte, into any) error {
	if response.StatusCode == http.StatusNoContent {
		return nil
	}
	found, isObject := object(text)
	isSuccess := response.StatusCode/100 == 2
	if isSuccess && isObject {
		switch into := into.(type) {
		case nil:
		case *fields:
			*into = found
		case *EventsAnswer:
			if err := checkedPage(found, "rows"); err != nil {
				return err
			}
			fill(reflect.ValueOf(into).Elem(), map[string]any(found))
		case *ChangesAnswer:
			if err := checkedPage(found, "changes"); err != nil {
				return err
			}
			fill(reflect.ValueOf(into).Elem(), map[string]any(found))
		default:
			fill(reflect.ValueOf(into).Elem(), map[string]any(found))
		}
		return nil
	}
	failure := unexpected(response.StatusCode)
	failure.RequestID = response.Header.Get("X-Request-Id")
	if after, isAsked := retryAfter(response.Header.Get("Retry-After"), time.Now()); isAsked {
		failure.RetryAfter = after
	}
	if said, isFault := faultOf(found); isFault && !isSuccess {
		failure.Code, failure.Message, failure.Details = said.Code, said.Message, said.Details
	}
	return failure
}

// faultOf is the error in a body that has the form of one.
func faultOf(body fields) (Fault, bool) {
	var said Fault
	error, isObject := body["error"].(map[string]any)
	_, hasCode := fields(error).text("code")
	_, hasMessage := error["message"].(string)
	details, isList := error["details"].([]any)
	if !isObject || !hasCode || !hasMessage || (!isList && error["details"] != nil) {
		return said, false
	}
	for _, detail := range details {
		one, isDetail := detail.(map[string]any)
		for _, name := range []string{"field", "issue", "location"} {
			_, isText := fields(one).optional(name)
			isDetail = isDetail && isText
		}
		if !isDetail {
			return said, false
		}
	}
	fill(reflect.ValueOf(&said).Elem(), error)
	return said, true
}

// checkedPage is an error where a page has not the form of one, whose list has this name.
func checkedPage(read fields, name string) error {
	rows, isList := read[name].([]any)
	_, isCursor := read.optional("next_cursor")
	for _, row := range rows {
		_, isRow := row.(map[string]any)
		isList = isList && isRow
	}
	if !isList || !isCursor {
		return unexpected(200)
	}
	return nil
}
