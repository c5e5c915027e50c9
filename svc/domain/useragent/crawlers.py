"""Programs by their user agents: crawlers, AI agents, monitors, scanners and libraries.

What may live here: the tables of names and marks by which a text is known not to be a person's browser, and who runs
the crawlers among them. Nothing here looks at hints, systems or browsers.

Which kind a crawler is: whatever trains a model, retrieves for one, or acts for an AI product is an `ai_bot`, also when
the same company runs a search engine beside it. Classic search, which shows a page's address in a list of results, is a
`search_crawler`. Previews, feeds, monitors, advertising, archives and SEO crawlers are programs and neither of the two.

An operator is named only where the published ranges are complete enough that a genuine crawler is found in them. That
is not so for Google's special and user-triggered
fetchers, and for agents that fetch for a user of Claude.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Literal

import crawleruseragents  # pyright: ignore[reportMissingTypeStubs] - it ships none
import msgspec
import ua_parser
from ua_parser.core import Matcher
from ua_parser.matchers import UserAgentMatcher
from ua_parser.regex import Resolver

CrawlerKind = Literal["search_crawler", "ai_bot"]

NAME_LENGTH = 80
"""Longer names are cut."""

_ATTEMPTS = 4
"""So many words of one text are looked at that seem to name a program and may turn out to name a phone."""


class Program(msgspec.Struct, frozen=True):
    """A program as its user agent names it."""

    name: str
    crawler: CrawlerKind | None = None
    operator: str | None = None


_AI_AGENTS: tuple[tuple[str, str | None], ...] = (
    ("GPTBot", "GPTBot"),
    ("OAI-SearchBot", "GPTBot"),
    ("ChatGPT-User", "GPTBot"),
    ("ChatGPT Agent", None),
    ("OAI-AdsBot", None),
    ("ClaudeBot", "ClaudeBot"),
    ("Claude-SearchBot", None),
    ("Claude-User", None),
    ("Claude-Web", None),
    ("claude-code", None),
    ("anthropic-ai", None),
    ("PerplexityBot", "PerplexityBot"),
    ("Perplexity-User", "PerplexityBot"),
    ("Google-Extended", None),
    ("Google-CloudVertexBot", None),
    ("Google-NotebookLM", None),
    ("GoogleAgent-Mariner", None),
    ("Google-Agent", None),
    ("Gemini-Deep-Research", None),
    ("CCBot", "Common Crawl"),
    ("Bytespider", None),
    ("TikTokSpider", None),
    ("Amazonbot", "Amazonbot"),
    ("Amzn-SearchBot", None),
    ("Amzn-User", None),
    ("bedrockbot", None),
    ("NovaAct", None),
    ("Applebot-Extended", "Applebot"),
    ("meta-externalagent", "Meta"),
    ("meta-externalfetcher", "Meta"),
    ("meta-webindexer", "Meta"),
    ("FacebookBot", "Meta"),
    ("DuckAssistBot", "DuckDuckBot"),
    ("cohere-ai", None),
    ("cohere-training-data-crawler", None),
    ("MistralAI-User", None),
    ("Diffbot", None),
    ("AI2Bot", None),
    ("Ai2Bot-Dolma", None),
    ("YouBot", None),
    ("PhindBot", None),
    ("iAskBot", None),
    ("iaskspider", None),
    ("ImagesiftBot", None),
    ("img2dataset", None),
    ("omgili", None),
    ("webzio-extended", None),
    ("Timpibot", None),
    ("PanguBot", None),
    ("PanguSpider", None),
    ("ChatGLM-Spider", None),
    ("DeepSeekBot", None),
    ("Kangaroo Bot", None),
    ("FirecrawlAgent", None),
    ("Crawl4AI", None),
    ("Character-AI", None),
    ("YandexAdditional", None),
    ("YandexAdditionalBot", None),
    ("MistralAI-Index", None),
    ("ProRataInc", None),
    ("QualifiedBot", None),
    ("Groq-Bot", None),
    ("Grok-DeepSearch", None),
    ("xAI-Bot", None),
    ("quillbot", None),
    ("OpenAI", None),
    ("omgilibot", None),
    ("SemrushBot-OCOB", None),
    ("SemrushBot-SWA", None),
    ("TavilyBot", None),
    ("LAIONDownloader", None),
    ("Crawlspace", None),
    ("Cloudflare-AutoRAG", None),
    ("aiHitBot", None),
    ("bigsur.ai", None),
    ("ShapBot", None),
    ("Thinkbot", None),
    ("ZanistaBot", None),
    ("ICC-Crawler", None),
    ("EchoboxBot", None),
    ("Factset_spyderbot", None),
    ("Sidetrade indexer bot", None),
    ("FriendlyCrawler", None),
    ("WRTNBot", None),
    ("Poseidon Research Crawler", None),
    ("wpbot", None),
    ("amazon-kendra", None),
    ("amazon-QBusiness", None),
    ("Manus-User", None),
    ("LinerBot", None),
    ("Andibot", None),
    ("Cotoyogi", None),
    ("SBIntuitionsBot", None),
    ("VelenPublicWebCrawler", None),
)
"""Name, operator."""

_AI_NAME = (
    r"\b(?:[A-Za-z0-9-]*[a-z0-9-])?(?:AI|GPT|LLM)-?"
    r"(?:[Bb]ot|User|Index|Search|Crawler|Spider|Agent|Assistant|Fetch|Scraper|Data|Train)[A-Za-z]*|\b[A-Za-z]+-AI\b"
)
"""How other AI products name their agents."""

_SEARCH_ENGINES: tuple[tuple[str, str, str | None], ...] = (
    (r"(?i:google-inspectiontool)", "Google-InspectionTool", "Googlebot"),
    (r"(?i:googlebot-image)", "Googlebot-Image", "Googlebot"),
    (r"(?i:googlebot-news)", "Googlebot-News", "Googlebot"),
    (r"(?i:googlebot-video)", "Googlebot-Video", "Googlebot"),
    (r"(?i:storebot-google)", "Storebot-Google", "Googlebot"),
    (r"(?i:googlebot)(?:[/;) ]|-Mobile|$)", "Googlebot", "Googlebot"),
    (r"(?i:bingbot)", "bingbot", "Bingbot"),
    (r"(?i:msnbot)", "msnbot", None),
    (r"(?i:adidxbot)", "adidxbot", None),
    (r"(?i:duckduckbot)", "DuckDuckBot", "DuckDuckBot"),
    (r"(?i:duckduckgo-favicons-bot)", "DuckDuckGo-Favicons-Bot", None),
    (r"(?i:applebot)", "Applebot", "Applebot"),
    (r"(?i:yandex(?:\w*bot|images|video|media|blogs|news|webmaster)\b)", "YandexBot", None),
    (r"(?i:baiduspider)", "Baiduspider", None),
    (r"(?i:sogou[ -](?:(?:web|pic|news|orion|inst|head|video|wap|test)[ -]?)?spider)", "Sogou", None),
    (r"(?i:seznambot)", "SeznamBot", None),
    (r"\b(?:Yeti|yeti)/", "Yeti", None),
    (r"(?i:qwantify|qwantbot)", "Qwantify", None),
    (r"(?i:petalbot|aspiegelbot)", "PetalBot", None),
    (r"(?i:yahoo!? slurp|slurp;)", "Yahoo! Slurp", None),
    (r"(?i:coccocbot)", "coccocbot", None),
    (r"(?i:mojeekbot)", "MojeekBot", None),
    (r"(?i:360spider)", "360Spider", None),
    (r"(?i:yisouspider)", "YisouSpider", None),
    (r"(?i:mail\.ru_bot)", "Mail.RU_Bot", None),
    (r"(?i:bravebot)", "BraveBot", None),
    (r"(?i:kagibot)", "Kagibot", None),
    (r"(?i:naverbot)", "NaverBot", None),
    (r"(?i:acoonbot)", "AcoonBot", None),
    (r"(?i:blekkobot|scoutjet)", "Blekkobot", None),
    (r"(?i:easouspider)", "EasouSpider", None),
    (r"(?i:orangebot)", "OrangeBot", None),
    (r"(?i:youdaobot)", "YoudaoBot", None),
    (r"(?i:gigabot)", "Gigabot", None),
    (r"\bDaum(?:oa)?/\d", "Daumoa", None),
    (r"(?i:seekport)", "Seekport", None),
    (r"(?i:search\.marginalia\.nu)", "Marginalia", None),
    (r"(?i:yacybot)", "yacybot", None),
    (r"(?i:teoma)", "Teoma", None),
    (r"(?i:presearch)", "Presearch", None),
)
"""Pattern, name, operator."""

_NEITHER: tuple[tuple[str, str], ...] = (
    (r"(?i:googleother)", "GoogleOther"),
    (r"(?i:adsbot-google)", "AdsBot-Google"),
    (r"(?i:mediapartners-google)", "Mediapartners-Google"),
    (r"(?i:apis-google)", "APIs-Google"),
    (r"AppEngine-Google", "AppEngine-Google"),
    (r"PlayStore-Google", "PlayStore-Google"),
    (r"Google-Safety", "Google-Safety"),
    (r"(?i:\bnutch)", "Nutch"),
    (r"(?i:python-requests)", "python-requests"),
    (r"(?i:go-http-client)", "Go-http-client"),
    (r"(?i:\bcurl/)", "curl"),
    (r"(?i:\bwget\b)", "Wget"),
    (r"(?i:\bokhttp\b)", "okhttp"),
    (r"(?i:\baxios\b)", "axios"),
    (r"(?i:node-fetch)", "node-fetch"),
    (r"(?i:postmanruntime)", "PostmanRuntime"),
    (r"(?i:apache-httpclient)", "Apache-HttpClient"),
    (r"^WhatsApp/[\d.]+(?: [AINW])?$", "WhatsApp"),
)
"""Pattern, name: programs whose entry in the list beside says more than is known, or says it of one spelling only."""

_SEARCH_TAG, _AI_TAG = "search-engine", "ai-crawler"

_PEOPLES_PATTERNS = frozenset(
    {
        "HeadlessChrome",  # a browser: detection judges it
        r"AP3A\.240617\.008",  # a build of Android that millions of phones carry
        r"008\/",
        r"Code\/1\.",
        r"Disqus",
        r"Fetch\/",
        r"Grammarly\/",
        r"Instapaper\/",
        r"Notion\/",
        r"PayPal\/",
        r"Trae\/",
        r"Tumblr\/",
        "Butterfly",
        "Caboto",
        "Expanse",
        "Fever",
        "Fluid",
        "MetaIAB Facebook",
        "NewsBlur",
        "Podimo",
        "Slurp",
        "Sogou",
        "Sonic",
        "Viber",
        "WhatsApp",
        "Yeti",
        "fuboTV",
        "turbotabbee",
        "Chirp|gotosocial",
    }
)
"""Patterns of the list that people's browsers, phones and apps match as well."""

_WORDS = (
    r"bots?(?:[^a-z]|$)|bot[_-]|robot|crawl|spider|scrap(?:er|ing|y)|archiver|harvest|indexer|fetcher|(?:^|[^g-z])fetch\b"
    r"|scann(?:er|ing)|\bscans?\b|monitor(?:ing|[^s]|$)|checker|\bcheck\b|validator|previews?\b|probe|prerender|parser|analy[sz]er"
    r"|subscribers|rss\b|feed(?:er|burner|demon|parser|reader)|librss|libwww|\bcurl|wget|python|\bperl\b|ruby/|\bjava/|\bphp\b"
    r"|node\.js|http-?client|http_request|rest-?client|request-promise|okhttp|axios|guzzle|postman|insomnia/|phantomjs"
    r"|selenium|puppeteer|playwright|synthetics?|uptime|lighthouse|pagespeed|page speed insights|thumbnail|screenshot"
    r"|browsershots|catchpoint|webpagetest|dejaclick|site24x7|survey-|research\b|\bexperiment|\brecon\b|link-?preview"
    r"|image-?proxy|emailproxy|mail\.\S+ proxy|mail proxy|transcoder|burpcollaborator|jndi:|oast\."
    r"|health-?check|healthservice|watchdog"
    r"|wappalyzer|builtwith|whatcms|google-(?:ads|adstxt|amphtml|hotel|lens|pinpoint|publisher|shopping|sites|cloud|read"
    r"|safety|site|structured|transparency|youtube|xrawler|favicon|firebase|partner)|google_partner|cloudflare-?[a-z]+"
    r"|facebookexternal|externalhit|url-?(?:check|preview|resolver)|useragent|user_agent|httrack|nikto|sqlmap|nmap|masscan"
    r"|zgrab|nessus|acunetix|nuclei|wpscan|clamav|linkcheck|pingdom|statuscake|newrelic|datadog|gomezagent"
    r"|[a-z]agent(?:/|$)|leadgen|lead-?radar|\bsender\b|collector|azure-logic-apps|mshots|xtate|jorgee|mixnode|grpc-|\blwp\b"
    r"|lua-resty|resty-http|munin/|xymon|taginspector|classifier|cypress/|search console|-google(?:/|\b)|sectigo"
    r"|comodo (?:ssl|dcv)|thumbor|extractor|morningscore|360jk|phpmyadmin|serviceagent|webhook|\bcron\b"
    r"|wechatdevtools|linkexpander|x\.y\.z"
    r"|dns-?(?:check|lookup)|lookup\b|\bhydra\b|hwcdn|octopus|discourse/|ssl early|\brunner|integration service"
    r"|scans\b|libcurl|aiohttp|urllib|faraday|winhttp|powershell|dart:io|pycurl|mechanize|http\.rb|undici|openai/|anthropic/"
)
"""Words that programs have in their names and people's browsers do not, but for those below."""

_INNOCENT = re.compile(
    r"cubot|botech|caboto|abbott?|talbot|_botdugls|turbotab|mozacfetch|camscanner|downloadmanager|libwww-fm",
    re.IGNORECASE,
)
"""Phones, televisions and companies whose names look like a program's."""

_BROWSER_STARTS = ("Mozilla/", "Opera/", "Dalvik/", "mozilla/")
_MODEL = re.compile(r"(?>[^()]*?Android)[^;()]*+(;(?:[^()]|\([^()]*+\))*+)\)", re.IGNORECASE)
_NO_MODEL = re.compile(r"compatible|http|google|catchpoint", re.IGNORECASE)
_COMPATIBLE = re.compile(
    r"compatible(?:[;,] *| +)(?!MSIE|Konqueror|NetFront|IBrowse|U;|Windows|ABrowse|Opera|Linux|iCab|Series"
    r"|America Online|MS|ms-office|OffByOne|Polaris|ANTGalio|NetPositive|Amiga|Tablet)\+?([\w.!-]+)|\(compatible\)"
)
_ADDRESS = re.compile(r"https?://|\bwww\.|[\w.-]@[\w-]+\.[a-z]", re.IGNORECASE)
_ALONE = re.compile(r"Mozilla/\d\.\d,? +\(?([\w.!-]+(?:/[\d.]+)?)\)?")
_BARE = re.compile(r"[A-Za-z0-9_.!-]+(?: [A-Za-z0-9_.!-]+){0,3}(?:/v?[\d.]+[a-z]?)?")
_APP = re.compile(
    r"\bapp\b|\bios\b|android|iphone|ipad|ipod|watch ?os|smarttv|smart-tv|podc|pod[a-z]{3}|casts?\b|player|music|radio"
    r"|tuner|spotify|xbmc|kodi|mosaic|midp|cldc|ucweb|browser|nokia|samsung|blackberry|sonyericsson|motorola"
    r"|^(?:lg|mot|sec|zte|sie)-|apple|tv\b|obigo|maui|brew|profile|lynx|links|w3m|elinks|dillo|sonos|outlook|office|itunes|darwin|windows",
    re.IGNORECASE,
)
"""What apps and old phones write of themselves, who have bare names and addresses as programs have."""

_FIRST = re.compile(r"[\w.!-]+(?: [A-Z][\w.!-]*)*")


_VERSION = re.compile(r"[/ ]v?\d[\d.]*$")


def find_program(text: str) -> Program | None:
    """The program that a user agent names; `None` for what people use. The text is valid Unicode."""
    text = _without_model(text)
    for _ in range(_ATTEMPTS):
        found = _resolver()(text, ua_parser.Domain.USER_AGENT).user_agent
        if found is None:
            break
        if found.family.isdecimal():
            return _listed(int(found.family), text)
        innocent = _INNOCENT.search(found.family)
        if innocent is None:
            return Program(_spoken_name(found.family, text))
        start = text.find(found.family)
        text = text[:start] + text[start + len(found.family) :]
    return _by_form(text)


def _spoken_name(word: str, text: str) -> str:
    """The word that gave a program away, unless it stands in an address behind the program's name."""
    named = _COMPATIBLE.search(text) if f"/{word}" in text else None
    name = named[1] if named is not None and named[1] else _VERSION.sub("", word.strip(" -._)"))
    return name[:NAME_LENGTH] or "unknown"


def _without_model(text: str) -> str:
    """Without the model and build of an Android phone: people name phones as they name robots."""
    opening = text.find("(")
    found = _MODEL.match(text, opening + 1) if opening >= 0 else None
    if found is None or _NO_MODEL.search(found[1]) is not None:
        return text
    return text[: found.start(1)] + text[found.end(1) :]


def _by_form(text: str) -> Program | None:
    """By what only programs write: their address, a bare name, or what they are compatible with."""
    if "ompatible" in text:
        found = _COMPATIBLE.search(text)
        if found is not None:
            return Program((found[1] or "unknown")[:NAME_LENGTH])
    if text.startswith(_BROWSER_STARTS):
        if len(text) <= NAME_LENGTH:
            found = _ALONE.fullmatch(text)
            if found is not None and _APP.search(text) is None:
                return Program(found[1])
        if ("://" in text or "www." in text or "@" in text) and _ADDRESS.search(text) is not None:
            return Program("unknown")
        return None
    if (_BARE.fullmatch(text) or _ADDRESS.search(text)) and _APP.search(text) is None:
        return Program(_first_words(text))
    return None


def _first_words(text: str) -> str:
    found = _FIRST.search(text)
    return found[0][:NAME_LENGTH] if found else "unknown"


def _listed(index: int, text: str) -> Program:
    known, patterns = _known()
    program = known[index]
    if program.name:
        return program
    found = re.search(patterns[index], text)
    name = _VERSION.sub("", found[0].partition(" (")[0].strip(" /();^")) if found else ""
    return msgspec.structs.replace(program, name=name[:NAME_LENGTH] or "unknown")


@cache
def _known() -> tuple[list[Program], list[str]]:
    """Known programs with their patterns, the first that matches counts. A name left empty is the text that matched."""
    known: list[tuple[Program, str]] = [
        (Program(name, "ai_bot", operator), rf"(?i:\b{re.escape(name)}\b)") for name, operator in _AI_AGENTS
    ]
    known += [(Program(name), pattern) for pattern, name in _NEITHER]
    known += [(Program(name, "search_crawler", operator), pattern) for pattern, name, operator in _SEARCH_ENGINES]
    known.append((Program("", "ai_bot"), _AI_NAME))
    for entry in crawleruseragents.CRAWLER_USER_AGENTS_DATA:
        pattern, tags = str(entry["pattern"]), entry.get("tags", ())
        if pattern not in _PEOPLES_PATTERNS:
            kind = "ai_bot" if _AI_TAG in tags else "search_crawler" if _SEARCH_TAG in tags else None
            known.append((Program("", kind), pattern))
    return [program for program, _ in known], [pattern for _, pattern in known]


@cache
def _resolver() -> Resolver:
    _, patterns = _known()
    matchers: list[Matcher[ua_parser.UserAgent]] = [
        UserAgentMatcher(pattern, str(index)) for index, pattern in enumerate(patterns)
    ]
    matchers.append(UserAgentMatcher(rf"(?i)([a-z0-9_.!-]*(?:{_WORDS})[a-z0-9_.!-]*)"))
    return Resolver((matchers, [], []))
