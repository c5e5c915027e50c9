package svc

import (
	"errors"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// longestRetryAfter is what a longer Retry-After is read as: nobody waits for either.
const longestRetryAfter = 999_999_999 * time.Second

var (
	secondsForm = regexp.MustCompile(`^[0-9]+$`)
	dateForm    = regexp.MustCompile(`^[A-Z][a-z][a-z], [0-9]{2} [A-Z][a-z][a-z] [1-9][0-9]{3} [0-9]{2}:[0-9]{2}:[0-9]{2} GMT$`)
)

// retryAfter is how long a Retry-After asks to wait, which is a number of seconds or a date (RFC 9110, section 10.2.3);
// false for any other text.
func retryAfter(value string, now time.Time) (time.Duration, bool) {
	if secondsForm.MatchString(value) {
		digits := strings.TrimLeft(value, "0")
		if len(digits) > len("999999999") {
			return longestRetryAfter, true
		}
		seconds, _ := strconv.Atoi("0" + digits)
		return time.Duration(seconds) * time.Second, true
	}
	date, err := time.Parse(http.TimeFormat, value)
	if err != nil || !dateForm.MatchString(value) {
		return 0, false
	}
	if date.Sub(now) > longestRetryAfter {
		return longestRetryAfter, true
	}
	return max(0, (date.Sub(now) + time.Second - 1).Truncate(time.Second)), true
}

// Retries has the attempts of one call, with full-jitter backoff. Retries{Attempts: 1} sends every call once.
type Retries struct {
	Attempts int
	// FirstWait is the longest wait before the second attempt; it doubles with each further one.
	FirstWait   time.Duration
	LongestWait time.Duration
	// LongestRetryAfter is how long a Retry-After is waited for: with a longer one the error is returned.
	LongestRetryAfter time.Duration
}

// DefaultRetries returns what a Client does unless it is told otherwise.
func DefaultRetries() Retries {
	return Retries{
		Attempts: 3, FirstWait: 100 * time.Millisecond, LongestWait: 2 * time.Second, LongestRetryAfter: 5 * time.Second,
	}
}

// wait returns how long to wait after attempt (from 1) failed, and false where there is no other one. random is from 0
// to 1. A call that is not repeatable is sent again only where it was not done.
func (r Retries) wait(failure error, attempt int, isRepeatable bool, random float64) (time.Duration, bool) {
	if attempt >= r.Attempts || !mayHelp(failure, isRepeatable) {
		return 0, false
	}
	longest := r.FirstWait
	for i := 1; i < attempt && longest < r.LongestWait; i++ {
		longest *= 2
	}
	wait := time.Duration(random * float64(min(longest, r.LongestWait)))
	var refused *APIError
	if errors.As(failure, &refused) && refused.RetryAfter >= 0 {
		if refused.RetryAfter > r.LongestRetryAfter {
			return 0, false
		}
		wait += refused.RetryAfter
	}
	return wait, true
}

func mayHelp(failure error, isRepeatable bool) bool {
	var lost *UnreachableError
	if errors.As(failure, &lost) {
		return isRepeatable || !lost.WasSent
	}
	var refused *APIError
	if !errors.As(failure, &refused) {
		return false
	}
	switch refused.Status {
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		return true // refused before anything was done
	}
	return isRepeatable && refused.Status >= http.StatusInternalServerError
}
