package svc

import (
	"crypto/ed25519"
	"encoding/base64"
	"reflect"
	"strings"
	"sync"
	"time"
)

const (
	verdictType = "svc-verdict+jwt"
	// keysValid is for how long published keys are kept.
	keysValid = time.Hour
	// readAgain is between two readings because of a key that is not known: made-up ones cost the service no requests.
	readAgain = time.Minute
)

// Verdict is what a signed verdict says. Fields with a pointer are left out where there is nothing to say, and by
// services before 0.3.0: AccountID, Action, Proven and Decision.
type Verdict struct {
	OrganizationID    string  `json:"aud"`
	VisitorID         string  `json:"sub"`
	RequestID         string  `json:"jti"`
	IssuedAt          int64   `json:"iat"`
	ExpiresAt         int64   `json:"exp"`
	Environment       string  `json:"environment"`
	Platform          string  `json:"platform"`
	IPAddress         string  `json:"ip_address"`
	Origin            *string `json:"origin"`
	Tag               *string `json:"tag"`
	AccountID         *string `json:"account_id"`
	Action            *string `json:"action"`
	VisitorIsNew      bool    `json:"visitor_is_new"`
	Identifiable      bool    `json:"identifiable"`
	VisitorConfidence int64   `json:"visitor_confidence"`
	Proven            *bool   `json:"proven"`
	SuspectScore      *int64  `json:"suspect_score"`
	SuspectLevel      *string `json:"suspect_level"`
	// Decision is what the rules of the organization decided.
	Decision *DecisionBody `json:"decision"`
}

// ExpectedVerdict says whose verdict is accepted for which action. The account is the one that the identify request
// named: what UpdateEvent sets afterwards is not in a verdict.
type ExpectedVerdict struct {
	OrganizationID string
	// Environment is production, staging or development.
	Environment string
	Action
}

// CheckedVerdict is what came of the checks of a signed verdict.
type CheckedVerdict struct {
	// Problem is as of Checked, and says whether Verdict may be relied on.
	Problem Problem
	// Verdict is nil where the signature does not hold.
	Verdict *Verdict

	problems     []Problem
	allowUnknown bool
}

// Decision is as of Checked.
func (c CheckedVerdict) Decision() Decision { return strictest(c.against()) }

// Reasons is as of Checked.
func (c CheckedVerdict) Reasons() []string { return reasons(c.against()) }

func (c CheckedVerdict) against() []finding {
	var said *judged
	if verdict := c.Verdict; verdict != nil {
		said = &judged{verdict.SuspectLevel, verdict.Identifiable, verdict.VisitorConfidence, verdict.Decision}
	}
	return against(allOf(c.Problem, c.problems), said, c.allowUnknown)
}

func checkedVerdict(problems []Problem, verdict *Verdict, allowUnknown bool) CheckedVerdict {
	return CheckedVerdict{Problem: firstOf(problems), Verdict: verdict, problems: problems, allowUnknown: allowUnknown}
}

// keyRing has the published keys of one organization.
type keyRing struct {
	mutex  sync.Mutex
	keys   map[string]ed25519.PublicKey
	readAt time.Time
}

// mustBeRead says whether the keys must be read before this token is checked.
func (r *keyRing) mustBeRead(token string, now time.Time) bool {
	kid := keyID(token)
	if kid == "" {
		return false
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	age := now.Sub(r.readAt)
	return r.readAt.IsZero() || age >= keysValid || (r.keys[kid] == nil && age >= readAgain)
}

// put keeps what was read in place of what is kept; an error where it has not the form of keys. One of another kind is left
// out.
func (r *keyRing) put(published any, now time.Time) error {
	list, isList := published.([]any)
	if !isList {
		return unexpected(200)
	}
	keys := map[string]ed25519.PublicKey{}
	for _, one := range list {
		key, _ := one.(map[string]any)
		for _, name := range []string{"kty", "crv", "kid", "x"} {
			if _, isText := key[name].(string); !isText {
				return unexpected(200)
			}
		}
		content := decoded(key["x"].(string))
		if key["kty"] == "OKP" && key["crv"] == "Ed25519" && len(content) == ed25519.PublicKeySize {
			keys[key["kid"].(string)] = content
		}
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.keys, r.readAt = keys, now
	return nil
}

// check has the claims and every problem but that of the first use; no claims where the signature does not hold.
func (r *keyRing) check(token string, expected ExpectedVerdict) (*Verdict, []Problem, error) {
	verdict := r.verified(token)
	isOurs := verdict != nil && verdict.OrganizationID == expected.OrganizationID &&
		verdict.Environment == expected.Environment
	if !isOurs {
		return nil, []Problem{Invalid}, nil
	}
	now := expected.now()
	if !now.After(time.Unix(verdict.IssuedAt, 0).Add(-clockSkew)) || !now.Before(time.Unix(verdict.ExpiresAt, 0)) {
		return verdict, []Problem{TooOld}, nil
	}
	problems, err := differences(identified{
		verdict.Origin, verdict.Tag, verdict.AccountID, verdict.Action, verdict.IPAddress, verdict.Platform,
		verdict.Proven,
	}, expected.Action)
	return verdict, problems, err
}

func (r *keyRing) verified(token string) *Verdict {
	r.mutex.Lock()
	key := r.keys[keyID(token)]
	r.mutex.Unlock()
	if key == nil {
		return nil
	}
	end := strings.LastIndexByte(token, '.')
	signature := decoded(token[end+1:])
	if !ed25519.Verify(key, []byte(token[:end]), signature) {
		return nil
	}
	_, claims, _ := strings.Cut(token[:end], ".")
	said, isObject := object(decoded(claims))
	if !isObject || !hasForm(said, []string{"aud", "jti", "environment"}, []string{"iat", "exp"}) {
		return nil
	}
	verdict := &Verdict{}
	fill(reflect.ValueOf(verdict).Elem(), map[string]any(said))
	return verdict
}

// keyID is the key that a token says it is signed by; empty for what is no verdict.
func keyID(token string) string {
	if strings.Count(token, ".") != 2 {
		return ""
	}
	first, _, _ := strings.Cut(token, ".")
	header, isObject := object(decoded(first))
	_, isCritical := header["crit"]
	if !isObject || header["alg"] != "EdDSA" || header["typ"] != verdictType || isCritical {
		return ""
	}
	kid, _ := header.text("kid")
	return kid
}

// decoded has the bytes of base64url in its one spelling, without padding (RFC 7515, section 2); nil for another text of
// the same bytes: two texts of one verdict would pass for two.
func decoded(text string) []byte {
	content, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || base64.RawURLEncoding.EncodeToString(content) != text {
		return nil
	}
	return content
}
