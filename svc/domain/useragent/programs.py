"""Programs by name: AI agents, search engines, crawlers, monitors and libraries.

What may live here: which programs there are, of what kind, and by whose published addresses they can be checked.

Policy: what trains on pages for an AI product, retrieves them for its answers, or acts in a browser for its user is
`ai_bot`, whoever runs it and even where a person asked for it. Classic search, its images, news and advertising
crawlers included, is `search_crawler`, also where the operator has an AI product with crawlers of its own. Whatever
else names itself (monitors, scanners, feed readers, previews, libraries) is a program and no more.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any, Literal, cast

import msgspec
from crawleruseragents import CRAWLER_USER_AGENTS_DATA  # pyright: ignore[reportMissingTypeStubs]
from ua_parser import Domain
from ua_parser.lazy import UserAgentMatcher
from ua_parser.regex import Resolver

Crawler = Literal["search_crawler", "ai_bot"]


class Program(msgspec.Struct, frozen=True):
    """A program as its user agent names it."""

    name: str
    crawler: Crawler | None = None
    operator: str | None = None


def read_program(user_agent: str) -> Program | None:
    """The program that a user agent names, or `None` for what looks like a person's browser or app."""
    kinds, resolver = _programs()
    found = resolver(user_agent, Domain.USER_AGENT).user_agent
    if found is None or not found.major:
        return None
    kind = kinds[int(found.major)]
    if kind is None:
        return None
    operator = kind.operator
    if kind.crawler == "search_crawler":
        operator = next((name for pattern, name in _OPERATORS if pattern.search(user_agent)), None)
    return Program(_tidied(found.family), kind.crawler, operator)


AI_AGENTS: tuple[tuple[str, str | None], ...] = (
    # OpenAI, Anthropic, Perplexity and Common Crawl publish one list for all of their agents.
    (r"GPTBot|OAI-SearchBot|ChatGPT-User|ChatGPT-Browser|ChatGPT Agent|Operator/\d.*openai", "GPTBot"),
    (r"ClaudeBot|Claude-User|Claude-SearchBot|Claude-Web|Claude-Code|anthropic-ai", "ClaudeBot"),
    (r"PerplexityBot|Perplexity-User|PerplexityUser", "PerplexityBot"),
    (r"CCBot", "Common Crawl"),
    (r"DuckAssistBot", "DuckDuckBot"),
    (r"Amazonbot|Amzn-SearchBot|Amzn-User", "Amazonbot"),
    (r"Applebot-Extended", "Applebot"),
    (r"meta-externalagent|meta-externalfetcher|meta-webindexer|FacebookBot", "Meta"),
    (r"NovaAct|Amazon-?Kendra|Amazon-QBusiness|AmazonBuyForMe|bedrockbot|KendraBot", None),
    (r"Google-Extended|Google-NotebookLM|Google-GeminiNotebook|Google-Pinpoint|Google-CloudVertexBot", None),
    (r"Gemini-Deep-Research|GoogleAgent-Mariner|Google-Agent|Bard-AI|Google-Gemini\S*", None),
    (r"Bytespider|TikTokSpider|DeepSeek-?[bB]ot|DeepseekBot|ChatGLM-Spider|PanguBot|QwenBot|Doubao\w*", None),
    (r"cohere-ai|cohere-training-data-crawler|MistralAI-\w+|Groq-Bot|xAI-\w+|GrokBot|Character-AI", None),
    (r"AI2Bot|Ai2Bot-?\w*|img2dataset|laion-\S+|Diffbot|omgili(?:bot)?|webzio-extended|Webzio\S*", None),
    (r"FirecrawlAgent|crawl4ai|ApifyBot|TavilyBot|LinkupBot|ExaBot|Brightbot|Crawlspace|Firecrawl", None),
    (r"YouBot|PhindBot|iAskBot|iaskspider|Kagi-?Assistant|AndiBot|LinerBot|Timpibot|IbouBot|AISearchBot", None),
    (r"ImagesiftBot|imageSpider|ImageSift|Velen\w*|VelenPublic\w*|SBIntuitionsBot|Cotoyogi|Sidetrade\S*bot", None),
    (r"ProRata\w*|QualifiedBot|QuillBot|wpbot|WRTNBot|Thinkbot|aiHitBot|ICC-Crawler|PetalBot/.*ai", None),
    (r"YandexAdditional(?:Bot)?|AzureAI-SearchBot|Cloudflare-AutoRAG|Devin|ManusAI?-User|Poseidon Research", None),
    (r"IsonAI-User|GoGuidesCrawler|SemrushBot-OCOB|SemrushBot-SWA|Poggio-\w+|ShapBot|Channel3Bot", None),
)
"""(pattern of product tokens, whose published ranges name it)."""

_OPERATORS = (
    (re.compile(r"Googlebot|GoogleOther|Storebot-Google|Google-InspectionTool"), "Googlebot"),
    (re.compile(r"bingbot|msnbot|adidxbot", re.IGNORECASE), "Bingbot"),
    (re.compile(r"Applebot"), "Applebot"),
    (re.compile(r"DuckDuckBot|DuckDuckGo-Favicons"), "DuckDuckBot"),
)
"""Search engines whose published list is among the ranges. Other fetchers of the same company use other addresses, of
which no list is bundled: holding the search engine's list against those would accuse honest ones."""

_SEARCH = (
    r"Googlebot[\w-]*|GoogleOther[\w-]*|Storebot-Google|Google-InspectionTool|AdsBot-Google[\w-]*|Mediapartners-Google",
    r"(?i:bingbot|msnbot[\w-]*|adidxbot|BingPreview)",
    r"Yandex\w*(?:Bot|Images|Video|Media|Direct|Market|Metrika|Blogs|News|Webmaster|Favicons|Mobile)\w*/",
    r"Baiduspider[\w-]*|Sogou[\w ]*[sS]pider|360Spider|YisouSpider|PetalBot|Yeti|Daumoa?|coccocbot[\w-]*",
    r"SeznamBot|Mojeek[Bb]ot|Qwant\w*|Applebot|DuckDuckBot|DuckDuckGo-Favicons-Bot|Slurp|Exabot|Bravebot|Kagibot",
)

_PEOPLE = (
    r"(?i:cubot)[ _;/)]",
    r"(?i:\bbotw|robotics)",
    r"(?i:[^\w]mon?itor app)",
)
"""Names that contain a word of programs and are none: phones of the maker Cubot."""

_LIBRARIES = (
    r"^(?i:curl|wget|libcurl|httpie|aria2|axel|fetch)[/ -]",
    r"(?i:\b(?:python|aiohttp|httpx|urllib|requests|scrapy|mechanize|pycurl|tornado)[\w.-]*[/ ]?)",
    r"(?i:\b(?:libwww|lwp|www-mechanize|perl)\b)",
    r"^(?i:java|jakarta|apache-httpclient|apache-httpasyncclient|okhttp|ktor-client|unirest-java|http[_-]?client)\b",
    r"(?i:\b(?:go-http-client|go-resty|fasthttp|colly|gocolly|reqwest|hyper|surf|ureq|got|axios|node-fetch|undici|needle)/)",
    r"(?i:\b(?:node-superagent|superagent|node\.js|deno|bun)/)",
    r"(?i:\b(?:guzzlehttp|guzzle|symfony|php|pear|snoopy|zend|wordpress|joomla|drupal|typo3|magpierss|simplepie)\b)",
    r"(?i:\b(?:faraday|ruby|rest-client|typhoeus|httparty|mechanize)\b)",
    r"(?i:\b(?:winhttp|powershell|microsoft url control|msxml|restsharp|wininet|mono|dotnet|indy library)\b)",
    r"(?i:\b(?:postmanruntime|insomnia|soapui|paw|bruno-runtime|rest client|jmeter|gatling|siege|locust|k6|vegeta)\b)",
    r"(?i:\b(?:apachebench|wrk|hey|autocannon|artillery|loadrunner|webbench)\b)",
    r"(?i:\b(?:phantomjs|slimerjs|casperjs|nightmare|puppeteer|playwright|selenium|webdriver|zombie\.js|htmlunit|splash)\b)",
)

_WORDS = (
    r"(?i:[a-z0-9._\- !]*(?:bot|crawler|crawl|spider|scraper|slurp|archiver|harvest|fetcher|ripper|sniffer|grabber)"
    r"(?:[^a-z]|$))",
    r"(?i:(?:crawl|spider|scrape|scraping|robots?\b|bot[-_/. ]))",
    r"(?i:\b(?:monitor(?:ing)?|uptime|pingdom|statuscake|healthcheck|health-check|checker|check_http|probe|watch(?:dog|er))\b)",
    r"(?i:(?:scanner|scan\b|nmap|masscan|zgrab|nikto|nuclei|sqlmap|wpscan|nessus|qualys|openvas|acunetix|dirbuster|gobuster))",
    r"(?i:(?:validator|validate|link-?check|linkcheck|checklink|lighthouse|pagespeed|gtmetrix|webpagetest|ptst/))",
    r"(?i:(?:preview|thumbnail|screenshot|embed|snippet|unfurl|favicon))",
    r"(?i:(?:feed(?:burner|ly|fetcher|parser|validator|wrangler|press|bin|demon|ster)|\brss\b|\batom\b/|newsblur|subscriber))",
    r"(?i:(?:archive|wayback|heritrix|nutch|indexer|index/|search(?:engine|bot)|seo\b|analyz|audit|verif(?:y|ier|ication)))",
    r"(?i:(?:proxy|transcoder|translate|accelerator|downloader|download master|getright|httrack|offline))",
    r"(?:\+ ?https?://|\(https?://|; ?https?://|^https?://|[( ;]\+?www\.)",
    r"(?i:[\w.+-]+@[\w-]+\.[a-z]{2,}|[\w.+-]+ (?:at|\[at\]) [\w-]+ (?:dot|\[dot\]) [a-z]{2,})",
)
"""Words and marks by which programs give themselves away: an address to complain to most of all."""


@cache
def _programs() -> tuple[list[Program | None], Resolver]:
    """All patterns as one automaton, the first in this order winning, and what each stands for."""
    kinds: list[Program | None] = []
    matchers: list[UserAgentMatcher] = []

    def add(pattern: str, kind: Program | None) -> None:
        matchers.append(UserAgentMatcher(f"({pattern})", major=str(len(kinds))))
        kinds.append(kind)

    for pattern, operator in AI_AGENTS:
        add(pattern, Program("", "ai_bot", operator))
    for pattern in _SEARCH:
        add(pattern, Program("", "search_crawler"))
    for entry in cast("list[dict[str, Any]]", CRAWLER_USER_AGENTS_DATA):
        if "browser-automation" not in entry.get("tags", ()):
            add(str(entry["pattern"]), Program("", _kind_of(entry)))
    for pattern in _PEOPLE:
        add(pattern, None)
    for pattern in (*_LIBRARIES, *_WORDS):
        add(pattern, Program(""))
    return kinds, Resolver((matchers, [], []))


def _kind_of(entry: dict[str, Any]) -> Crawler | None:
    tags = entry.get("tags", ())
    if "ai-crawler" in tags:
        return "ai_bot"
    return "search_crawler" if "search-engine" in tags else None


def _tidied(matched: str) -> str:
    return matched.strip(" /;:,.()[]+-")[:64] or "program"
