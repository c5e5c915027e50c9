"""The numbers of matching, each group with where it comes from. Constants only: nothing here computes an answer.

Rates and weights were fitted on simulated visits (`bench/linkage`) whose change rates follow the 122,350 fingerprints
that the FP-Stalker study published (Vastel et al., IEEE S&P 2018) and whose values follow the monthly browser networks
of apify/fingerprint-suite. An organization's own statistics replace most of them within a few hundred visits.
Tuples over attributes are in the order of `Attribute`.
"""

from __future__ import annotations

from typing import Final

from svc.identify.model import Attribute

ATTRIBUTE_COUNT: Final = 20
assert len(Attribute) == ATTRIBUTE_COUNT, "a new attribute needs a number in every table of this module"

# ---- what can be identified

_MEASURES: Final = {
    Attribute.MODEL: (7.0, 0.4, 0.01),
    Attribute.GPU: (5.0, 0.85, 0.04),
    Attribute.SCREEN: (3.0, 1.0, 0.1),
    Attribute.PIXEL_RATIO: (1.0, 0.04, 0.3),
    Attribute.HARDWARE: (2.5, 0.7, 0.08),
    Attribute.TOUCH: (0.5, 0.2, 0.6),
    Attribute.LANGUAGES: (2.0, 0.6, 0.3),
    Attribute.TIMEZONE: (2.5, 0.35, 0.2),
    Attribute.FONTS: (3.0, 0.95, 0.1),
    Attribute.CANVAS: (6.0, 0.42, 0.03),
    Attribute.WEBGL: (3.0, 0.3, 0.1),
    Attribute.AUDIO: (1.5, 0.1, 0.5),
    Attribute.FONT_PREFERENCES: (1.5, 0.6, 0.4),
    Attribute.FRAME: (1.5, 0.5, 0.3),
    Attribute.COLOUR: (0.8, 0.3, 0.5),
    Attribute.ACCESSIBILITY: (0.4, 0.9, 0.8),
    Attribute.PLUGINS: (0.5, 0.3, 0.9),
    Attribute.MISCELLANEOUS: (0.5, 0.4, 0.6),
    Attribute.REST: (3.0, 0.6, 0.2),
    Attribute.FIRST_LANGUAGE: (0.0, 0.9, 0.4),  # no bits: it follows from the languages
}
"""Attribute -> its `INFORMATION_BITS`, `AGREEMENT_WEIGHT` and `PRIOR_FREQUENCY`."""
assert set(_MEASURES) == set(Attribute)
INFORMATION_BITS: Final = {attribute: bits for attribute, (bits, _, _) in _MEASURES.items()}
"""Self-information of each attribute in bits: rounded averages, less what it shares with those before it."""

IDENTIFIABLE_BITS: Final = 14.0
"""Below this a report fits one in 16,000 people at best: it identifies nobody."""
IDENTIFIABLE_ATTRIBUTES: Final = 4

# ---- how much is read

BLOCK_LENGTH: Final = 32
"""Visitor numbers kept in a block; more devices than that are counted only."""
RECORDS_READ: Final = 20
"""Visitor records read for one identification, the token's included."""
VOTES_WITHIN: Final = 3
"""How many blocks a visitor may stand in fewer than the one that stands in most, to be read at all."""
NETWORK_VOTES: Final = 5
"""How many blocks that of the report's network counts for: as many as there are blocks over attributes, in which a copy
of the report from elsewhere may stand. Who comes close on this network leaves those from elsewhere unread, whom the
counts of blocks stand for."""
RECORDS_SCORED: Final = 12
LIKENESS_WITHIN: Final = 4
"""Of those, how many a cheap ranking leaves to compare, and how many attributes they may be behind the likeliest."""

# ---- how devices change

ChangeRate = tuple[float, float, float]
"""(differs between any two visits, further changes a day, changed by one release of the browser or system)."""

CHANGE_DESKTOP: Final[dict[Attribute, ChangeRate]] = {
    Attribute.MODEL: (0.0005, 0.0, 0.0),
    Attribute.GPU: (0.012, 0.0004, 0.0),
    Attribute.SCREEN: (0.085, 0.0005, 0.001),
    Attribute.PIXEL_RATIO: (0.07, 0.0005, 0.0),
    Attribute.HARDWARE: (0.004, 0.0002, 0.004),
    Attribute.TOUCH: (0.003, 0.0002, 0.0),
    Attribute.LANGUAGES: (0.005, 0.001, 0.003),
    Attribute.TIMEZONE: (0.015, 0.004, 0.0),
    Attribute.FONTS: (0.005, 0.005, 0.0),
    Attribute.CANVAS: (0.02, 0.0015, 0.25),
    Attribute.WEBGL: (0.015, 0.002, 0.08),
    Attribute.AUDIO: (0.004, 0.0002, 0.04),
    Attribute.FONT_PREFERENCES: (0.003, 0.0004, 0.06),
    Attribute.FRAME: (0.08, 0.004, 0.0),
    Attribute.COLOUR: (0.08, 0.0005, 0.0),
    Attribute.ACCESSIBILITY: (0.003, 0.002, 0.02),
    Attribute.PLUGINS: (0.004, 0.001, 0.05),
    Attribute.MISCELLANEOUS: (0.004, 0.0003, 0.06),
    Attribute.REST: (0.05, 0.005, 0.2),
    Attribute.FIRST_LANGUAGE: (0.002, 0.0004, 0.0),
}
CHANGE_MOBILE: Final[dict[Attribute, ChangeRate]] = CHANGE_DESKTOP | {
    Attribute.GPU: (0.001, 0.0001, 0.0),
    Attribute.SCREEN: (0.004, 0.0002, 0.0),
    Attribute.PIXEL_RATIO: (0.004, 0.0002, 0.0),
    Attribute.HARDWARE: (0.002, 0.0001, 0.004),
    Attribute.TOUCH: (0.001, 0.0001, 0.0),
    Attribute.FONTS: (0.002, 0.0004, 0.01),
    Attribute.FRAME: (0.01, 0.0005, 0.0),
    Attribute.COLOUR: (0.004, 0.0003, 0.0),
}
CHANGE_FLOOR: Final = 0.0001
CHANGE_CEILING: Final = 0.97
"""No change is certain, and none impossible."""

CHANGE_DAYS: Final = (0, 1, 2, 3, 4, 5, 6, 7, 9, 12, 15, 19, 24, 30, 40, 55, 75, 100, 140, 200, 280, 400)
"""Days of absence for which the change tables have a row; longer absences use the last one."""
CHANGE_RELEASES: Final = (0, 1, 2, 4, 8)
"""Releases between two visits for which there is a table; greater distances use the last one."""

FOLLOWS: Final = {
    Attribute.FIRST_LANGUAGE: Attribute.LANGUAGES,
    Attribute.PIXEL_RATIO: Attribute.SCREEN,
    Attribute.FRAME: Attribute.SCREEN,
    Attribute.COLOUR: Attribute.SCREEN,
    Attribute.WEBGL: Attribute.CANVAS,
    Attribute.MISCELLANEOUS: Attribute.CANVAS,
}
"""A change that comes along with another one (a monitor is plugged in, the browser is upgraded) is paid for once. What
follows the canvas does so only when the version changed too: on one version they have nothing in common."""

LOG_FOLLOWED: Final = -0.5
"""Log likelihood of a change whose leader changed too."""
LOG_HABIT: Final = -0.95
"""Of a value that this visitor had before: docked and undocked, home and away."""
LOG_HABIT_FOLLOWED: Final = -0.2
LOG_CHANGED_BEFORE: Final = 1.1
"""Of a change of what this visitor is known to change, times log(1 + the values that it had before): some browsers add
noise to a canvas, some people change their time zone every week, and most do neither."""
LOG_FORMER_REPORT: Final = -11.0
"""Of a whole report that this visitor sent once, before its latest few or before an upgrade, when the network is new
too: rather another device that stands where this one stood."""
LOG_NEAR_FONTS: Final = 2.0
LOG_FAR_FONTS: Final = -1.5
LOG_NEAR_REST: Final = 2.0
LOG_FAR_REST: Final = -1.0
"""Corrections to a change of a set, when the two sets share three quarters of their members, and when they do not."""
LOG_PRIVATE_CANVAS: Final = 3.5
"""Correction to another canvas where WebKit comes without the token that this visitor has: in private windows it adds
noise to what is read from a canvas."""
LOG_CHANGED_AT_ONCE: Final = -1.2
"""Of any change within a day: soon after a visit comes the same report again, or another device of the household."""
LOG_NEIGHBOR: Final = (-1.5, -3.0)
"""Of a report that differs on no newer version, from a crowded network: rather another device there. After more than a
day, and sooner (ADR 78)."""
LOG_MOVED_AT_HOME: Final = -1.2
"""Of another time zone on a network that the visitor used before, or near it: a traveler is elsewhere."""
EXACT_KEEPS_DAYS: Final = 12.0
LOG_EXACT_KEPT_LEAST: Final = -4.0
"""A report, versions included, stays the same for this number of days (exponential); the least that this weighs."""
LOG_OTHER_VERSION: Final = -0.2
LOG_VERSION_DOWN: Final = -5.5
LOG_TENTH_DOWN: Final = -0.8
"""Browsers and systems are hardly ever downgraded: taken for 0.4 % of version changes. And for each further tenth of a
release by which a browser falls."""
FALLS_TENTHS: Final = 40
LEAPS_TENTHS: Final = 70
LEAPS_WITHIN_S: Final = 2 * 86_400
"""In tenths of a major release: from which fall on a browser is another program, and from which leap within how many
seconds. Programs that bring an engine of their own stand side by side on one machine, while an upgrade goes forward,
and mostly by one release (ADR 89)."""

# ---- how often devices look alike

AGREEMENT_WEIGHT: Final = {attribute: weight for attribute, (_, weight, _) in _MEASURES.items()}
"""How much agreement on an attribute still says, given that the others agree: attributes correlate. Poisson fit of the
observed number of twins on the log frequencies. The joint hardware and the joint locale count fully."""

HARDWARE_PARTS: Final = (Attribute.MODEL, Attribute.GPU, Attribute.SCREEN, Attribute.HARDWARE, Attribute.TOUCH)
LOCALE_PARTS: Final = (Attribute.LANGUAGES, Attribute.TIMEZONE)
"""Counted jointly, since their parts hardly ever vary alone."""

PRIOR_FREQUENCY: Final = {attribute: frequency for attribute, (_, _, frequency) in _MEASURES.items()}
PRIOR_HARDWARE: Final = 0.01
PRIOR_LOCALE: Final = 0.1
PRIOR_DEVICES: Final = 4.0
"""How often two devices of one class agree by chance, and how many devices that belief is worth."""

UNSEEN_DEVICES: Final = 300.0
UNSEEN_AT_MOST: Final = 5.0
"""How far a small organization is from having seen its visitors, in devices, and the most that this may weigh. The
first lets a young organization recognize at all; the second keeps its first few visitors apart."""
RARE_TOGETHER: Final = 1.8
"""Rare values come together more often than their product says: the most that the log of expected twins is raised."""
UNSEEN_TWINS: Final = 0.5
"""Twins expected at most beyond those that the block counts show, so that a flood of near copies of a report does not
make the report itself look common."""
CLONES_DESKTOP: Final = 0.0008
CLONES_MOBILE: Final = 0.004
"""Expected twins that are not due to chance: two phones of one household, machines of one office image."""
CLONES_NEAR: Final = 0.1
"""Share of those that are met on the same network."""

# ---- network and habit

SAME_NETWORK_DESKTOP: Final = (0.65, 0.15)
SAME_NETWORK_MOBILE: Final = (0.65, 0.35)
"""P(the visit comes from the /24 of the last visit, from that of an earlier one)."""
LOG_TWIN_SAME_WIDE_NETWORK: Final = -2.5
"""A chance twin is that much less likely to come from the same /16."""
NETWORK_PRIOR: Final = 0.3
"""Devices of a class that are expected on a network beside the visitor's own."""
LOG_FAR_NETWORK_DESKTOP: Final = -5.0
LOG_FAR_NETWORK_MOBILE: Final = -3.3
GAP_DAYS: Final = 5.5
"""Recency: a visitor weighs GAP_DAYS / (absence + GAP_DAYS / 3), within the bounds below."""
GAP_BOUNDS: Final = (0.15, 3.0)
RETURN_INTERVALS_BOUNDS: Final = (1.0, 8.0)
RETURN_INTERVALS_SHRINK: Final = 100.0
"""Lowest and highest factor by which an organization's own returns correct recency, and how many returns the belief
above is worth in each row of `CHANGE_DAYS` (`lessons`). The lowest is 1, so that an unexpected visitor is as
likely as without return intervals: 0.1 split visitors that came back late (ADR 62)."""
RETURN_INTERVALS_EVERY: Final = 32
RETURN_INTERVALS_MEMORY: Final = 20_000.0
"""Proven returns after which the correction is computed again, and how many are remembered."""
LOG_FAR_UNVISITED: Final = -1.8
LOG_FAR_SHARED: Final = (1.2, 2.5)
"""Corrections to a far network where no other device was seen; where one was, or several: people roam to places that
others use as well, while strangers come from homes of their own."""
LOG_FAR_AT_ONCE: Final = -0.8
"""And when the visitor was elsewhere within the last day."""
LOG_OFTEN: Final = ((1.9, 8.0), (1.0, 4.0))
OFTEN_AT_MOST: Final = 40.0
"""A visitor of many visits is met elsewhere more often than one of few: exponent and usual visits, the same for one
whose tokens come back, and the most visits that count."""
LOG_HIDDEN_FIRST: Final = -1.5
"""Of an address that tells nothing (VPN, Tor, relay, proxy), for a visitor that always came from one that does: who
hides does so by habit. For one that hid before, such addresses count as one network (`SAME_NETWORK_DESKTOP`)."""
COMES_WITHOUT_TOKEN: Final = 0.25
FORGETFUL_COMES_WITHOUT_TOKEN: Final = 0.95
"""P(a visitor shows up without its token), and in browsers that erase what scripts store after seven days without a
visit (WebKit's tracking prevention)."""
FORGETFUL_DAYS: Final = 7
LOG_OTHER_LIVE_TOKEN: Final = -11.5
"""It brings a stored token that we do not know, while this visitor has a living one."""

LOG_STRANGERS_TOKEN: Final = -40.0
"""It brings the token of another device that once passed for this visitor."""

RETURN_RATE_WITH_TOKEN: Final = (0.23, 0.03, 0.97)
RETURN_RATE_WITHOUT_TOKEN: Final = (0.8, 0.5, 0.97)
RETURN_RATE_VISITS: Final = 40.0
RETURN_RATE_MEMORY: Final = 4000.0
"""P(a visit with a token that is not known is a return), the same of one with none: to begin with, at least and at
most; how many visits that belief is worth, and how many are remembered. Without tokens every doubtful split would lower
the rate, and a lower rate split more: hence the floor."""
CLASS_VISITS: Final = 10.0
"""Visits of a class that the belief is worth where other classes say otherwise."""
MISSED_BY_BLOCKS: Final = 0.01
"""Share of returning visitors that no block finds."""

# ---- calibration

CALIBRATION: Final = (
    (2.8, 0.9),
    (0.5, 0.87),
    (0.2, 0.7),
    (0.4, 0.59),
    (-1.7, 0.62),
    (-0.4, 0.6),
    (3.5, 0.84),
    (2.5, 0.85),
    (1.3, 0.65),
    (1.0, 0.65),
    (-0.3, 0.66),
    (0.1, 0.57),
    (5.0, 0.47),
    (2.4, 0.45),
    (1.5, 0.49),
    (1.0, 0.68),
    (-0.7, 0.19),
    (0.0, 0.42),
    (5.2, 0.46),
    (2.5, 0.8),
    (1.6, 0.58),
    (0.9, 0.7),
    (0.4, 0.28),
    (0.3, 0.4),
)
"""Per kind of link decision (`likelihood.kind_of`): intercept and slope of the log odds that it is right over the log
odds that it was given, both less those of the prior. Fitted by `bench/linkage/curves` on four simulated populations,
one of them three quarters factory copies, with and without tokens, and on the devices that are not held out there.
Crowded surroundings were too rare: set between near and far. Elsewhere with a token that is not known (18th and 24th),
a little below the fit: among factory copies that is where the merges are."""
CAUTION: Final = (0.2, 0.7)
CAUTION_VISITS: Final = 800.0
"""Log odds taken off a link to a visitor that is not where it was, in an organization of many visits and in one without
any, and the number of visits that halves the difference. The curves hold on average: a population full of factory
copies is worse, and how many devices of an organization look alike shows only when it has seen them."""
PROVEN_PROBABILITY: Final = 0.995
"""From which probability on a known network proves its visitor."""
CROWDED_DEVICES: Final = 1.5
"""Other devices of a class on a network from where on it says little."""

# ---- the decision

LINK_AT_HOME: Final = 0.87
LINK_CROWDED: Final = 0.7
LINK_ELSEWHERE: Final = 0.93
LINK_WITH_TOKEN: Final = (0.8, 0.97)
LINK_WITH_TOKEN_NEARBY: Final = 0.5
YOUNG_VISITS: Final = 50.0
LINK_PRIVATE: Final = (0.75, 0.8)
"""Tau: a visit is linked from this probability on. A doubtful split costs less than a false merge (ADR 65). Without a
token: where the visitor is known to be, that is on a network of its own or behind an address that hides as before; on a
crowded network of its own, where a device that gets a new id at each upgrade is taken for its neighbor in the end, and
where every link updates the template for the same reason (ADR 78); and anywhere else, where nothing but likeness
speaks, and where equal devices stand that nobody has seen yet. With a token that is not known, and without one for a
visitor whose tokens come back: where no other device is known to report what this one does, and where one is. With an
unknown token and without such another device, there or in the same wide network: what is likelier than not, since a
token that joined in doubt is given back when the older one returns. With a new token and such devices elsewhere alone:
as at home without one (ADR 173)."""
RESIDENT_VISITS: Final = 3
"""Visits from which on a device lives where it was: there it is rather updated by now than another one on a visit."""
SOLE_DEVICE: Final = 1.5
HIDDEN_DEVICE: Final = 0.55
SOLE_PROBABILITY: Final = 0.9985
"""A report that fewer devices than this sent, and that is that surely its sender's, can belong to one device only."""
STATED_CAUTION: Final = 1.0
"""Log odds by which a link to a visitor that is not where it was is reported as less sure than it is held to be: the
most by which the curves were over-sure in a population of which three quarters are factory copies."""
TEMPLATE_PROBABILITIES: Final = (0.92, 0.98)
"""Links below count the visit and leave the record's template alone, so that doubt cannot drift a record away. The
second where a visitor that has tokens came without one, as from a private window: its record follows the visits that
bring them, and a network that joins in error would prove a stranger's token from there on."""
EVIDENCE_PROBABILITY: Final = 0.95
"""Links from here on teach the change rates."""
SPLIT_PROBABILITY: Final = 0.05
"""A new visitor remembers the visitor that it may have been from here on."""
HARD_ATTRIBUTES: Final = (Attribute.MODEL, Attribute.GPU, Attribute.HARDWARE, Attribute.TOUCH)
"""What a device hardly ever changes; on phones the screen too."""

# ---- the token

TOKEN_LOG_ODDS: Final = (15.0, 8.0, 2.3)
"""Log odds that a presented token is with the device it was given to, before the report is looked at: on a network that
the visitor used before, elsewhere in one of its wide networks, and anywhere else. The last is where a copied token of
another device of the same browser and system is believed in 3 % of cases, and an owner whose report has changed in 98 %
(`bench/linkage/theft`)."""
CONTRADICTIONS: Final = 3
"""So much hardware that differs, the class counted with it, is another device wherever it is."""
CHANGES_BELIEVED: Final = 2
"""Independent changes up to which a token is believed anywhere while no hardware and no class contradicts it: between
devices that are so much alike, the odds say less than that copied tokens are rare."""
LOG_OTHER_CLASS: Final = -5.0
"""Log likelihood of another browser, system or form factor, where only the profile moved or the user agent was set."""
DOUBTED_CONFIDENCE: Final = 85
DOUBTED_PROBABILITY: Final = 0.85
"""Of a link by a token that the device contradicts, where everything else speaks for it: below
`TEMPLATE_PROBABILITIES`, so that the record stays as it is."""
UNPROVEN_CONFIDENCE: Final = 89
LIVING_DAYS: Final = 30
"""Highest confidence of an answer that something copied could have brought about, and for how many days after its last
visit a token of the visitor makes it so (decisions 18.1)."""
PROBATION_DAYS: Final = 3
"""A token that joins a record because the report looks alike is on probation: it must come on so many further days from
a network of that visitor before it proves anything from elsewhere. A copied report is enough to join."""
JOINED_DAYS: Final = 1
SILENT_DAYS: Final = 3
"""At the very address of a proven visit so many further days are enough, once the visitor's older token of that site
was not seen for so many: it may be alive, and this one a neighbor's."""
COUNTED_AFTER_S: Final = 6 * 3600
"""A visit that changes nothing is written down when the last one is longer ago than this."""
OPEN_DAYS: Final = 10
"""A token of which nothing was known for this number of days was a private window's, or its storage was cleared."""
REPLACED_BELOW: Final = 0.1
"""Probability of being alive below which a silent token is taken to be gone sooner (`Visitor.alive`)."""
TWINS: Final = (0.5, 9.0)
TWINS_REMEMBERED: Final = 2000.0
TWIN_ODDS: Final = 0.075
"""Of tokens that joined a visitor beside an older one and came back before that did: how many are another device's, of
how many, to begin with; how many are remembered; and the odds from which on one gets a visitor of its own: a doubtful
split costs less than a false merge."""
APART: Final = (3.0, 10.0)
APART_OF_CLASS: Final = 10.0
APART_REMEMBERED: Final = 2000.0
"""Of tokens that joined a visitor beside an older one by likeness: how many are another device's, of how many, to begin
with; how many of a class the share of all desktops or mobiles is worth; and how many are remembered
(`Statistics.share_apart`)."""
RATE_DAYS: Final = 5.0
"""Days without a visit that a visitor is taken to have had before its first one, when its rate of visits is asked."""

assert set(CHANGE_DESKTOP) == set(CHANGE_MOBILE) == set(Attribute)

NEWCOMERS: Final = (50.0, 100.0)
NEWCOMERS_REMEMBERED: Final = 2_000.0
NEW_FOR_EACH_KNOWN: Final = (0.25, 4.0)
"""New devices of so many visits, in the place of those that an organization has not had yet; how many visits are
remembered; and the bounds of what follows (`Statistics.new_for_each_known`)."""
