"""What a network's name tells: hosting companies and VPN services among those who announce addresses.

What may live here: the tables of names and words, and the one question they answer. A network that also serves homes
must not be here: one wrong name flags a whole country's people, and one missing name only a company's machines. Transit
networks are left out for the same reason: whole offices go online through Cogent, GTT, Lumen or Zayo.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Literal

CACHED_NAMES = 8_192
"""Distinct names kept: the visitors of a site come from few thousand networks."""

LONGEST_NAME = 200
"""Characters looked at."""


@lru_cache(maxsize=CACHED_NAMES)
def kind_of_network(name: str) -> Literal["hosting", "vpn"] | None:
    """What stands behind the addresses of a network with this name; `None` for all that is not known for sure."""
    words = " ".join(_WORD.findall(name[:LONGEST_NAME].lower()))
    if _VPN.search(words) is not None:
        return "vpn"
    if _HOSTING_COMPANY.search(words) is not None:
        return "hosting"
    return "hosting" if _HOSTING_WORD.search(words) is not None and _ACCESS_WORD.search(words) is None else None


def _names(table: str) -> str:
    return "|".join(sorted((name.strip() for name in table.replace("\n", "").split(";")), key=len, reverse=True))


# Names are written as they are looked for: lower case, with a space for each run of signs. All match whole words.
_VPN_SERVICES = """
31173 services;airvpn;anchorfree;azirevpn;cyberghost;express vpn;expressvpn;golden frog;gz systems;hidemyass;
ipvanish;ivpn;keepsolid;london trust media;mudhook;mullvad;nordvpn;ovpn;owl limited;packethub;
perfect privacy;private internet access;privatevpn;privax;proton ag;proton technologies;protonvpn;purevpn;
safervpn;strongvpn;surfshark;tefincom;torguard;tunnelbear;vyprvpn;windscribe;zenmate
"""

_HOSTING_COMPANIES = """
23m;23media;3xk tech;acens;aceville;advania island;aeza;akamai;alibaba;alicloud;aliyun;all inkl;
almouroltec;amanah tech;amarutu;amazon;anexia;arsys;artmotion;aruba s p a;aruba spa;asline;atman;
automattic;b2 net solutions;backblaze;base ip;baxet;beget;belcloud;bitlaunch;blacknight;blazing seo;
blix solutions;bluevps;bodis;brainoza;bunny communications;bunny technology;bunnycdn;bunnyway;buyvm;byteplus;
cachefly;cachenetworks;cdn77;cdnetworks;cdnvideo;chinacache;chinanetcenter;choopa;civo;cleura;clouvider;
codero;colocrossing;cologix;combahton;confluence networks;contabo;coresite;coreweave;creanova;crusoe;
cyberfolks;cyrusone;cyxtera;data102;databank holdings;datacamp;dataforest;datafoundry;datahop;datalix;
datanoc;datapipe;dataplugs;datashack;datasource ag;datawagon;dataweb;ddos guard;dedipath;delis;des capital;
digital ocean;digital realty;digitalocean;directspace;dogado;domeneshop;dropbox;dyjix;dynadot;e2e networks;
easyname;edgecast;edgeuno;emerald onion;endurance international;eonix;equinix;estnoc;estoxy;euserv;evoxt;
exabytes;exoscale;f n s holdings;fastcomet;fastly;fdcservers;fiber grid;fiberhub;first colo;firstbyte;
flexential;flokinet;fly io;forked networks;forpsi;frantech;fsit;g core labs;gandi;gcore;glesys;
global layer;globalteleho;godaddy;google cloud;google ireland;google llc;gransy;green floid;gsl networks;
gthost;gyron;h4y technologies;handy networks;heficed;heroku;hetzner;highwinds;hivelocity;home pl;hop one;
huawei clouds;hydra communications;hyonix;i3d net;icdsoft;idc frontier;ikoula;imperva;incapsula;
infolink global;infomaniak;inmotion;input output flood;internap;interserver;interxion;ioflood;iomart;ionos;
ip volume;ipserverone;ipxo;isimtescil;it7 networks;itl llc;itldc;iweb;jelastic;joyent;kagoya;kamatera;
kaopu;keyweb;krypt technologies;kuroit;lambda labs;latitude sh;layer7 technologies;layerstack;leaseweb;
level66;lightnode;lightwave networks;limelight networks;limenet;limestone networks;linode;liquid web;
liquidweb;locaweb;logicweb;loopia;lunanode;m247;m5 computer security;macminivault;mailchimp;majordomo;
masterinter;maxided;maxihost;maxko;medianova;mediatemple;melbicom;memset;mevspace;microsoft;migadu;
mirholding;misaka;mittwald;mivocloud;modirum;multacom;mvps;myloc;name com;namecheap;nameshield;nazwa pl;
nearlyfreespeech;neolo;nephoscale;netactuate;netangels;netart;netcup;netelligent;netlify;netrouting;netsons;
network solutions llc;newfold;nexcess;nexeon;nexril;nexus bytes;nforce;nine internet solutions;njalla;nocix;
nocser;novoserve;nuclearfallout;nucleus inc;octopuce;oktawave;olvm;one com;oneprovider;online s a s;
online sas;oracle;outscale;ovh;packet exchange;paperspace;penyacom;performive;phoenix nap;phoenixnap;pindc;
plusserver;ponynet;privex;profihost;prolocation;prometeus;psychz;pulsed media;pulseheberg;punchtech;qrator;
quadranet;quasi networks;quickpacket;quintex alliance;ramnode;readyspace;reba communications;reg ru;
reliablesite;runpod;rusonyx;ruvds;sakura internet;salesforce;scalaxy;scaleway;sedo;selectel;sharktech;
shinjiru;shopify;simply transit;siteground;snel com;softlayer;sologigabit;spaceship;squarespace;ss net;
stablepoint;stackpath;stark industries;steadfast;strato;sucuri;swiftway;synergy wholesale;team internet;
techavenue;technorail;tencent;teraswitch;terratransit;the constant company;the infrastructure group;tierpoint;
tilaa;timeweb;trabia;transip;turnkey internet;tzulo;ubiquity;ucloud;uk 2;uk2;unified layer;united domains;
upress;vautron;vdsina;veesp;velia net;vercel;versaweb;vexx;virmach;virpus;virtua systems;virtuozzo;vivio;
volcano engine;volico;volumedrive;voxility;vpls;vultr;wasabi technologies;webair;webhuset;webnx;webtasy;
webzilla;wedos;weebly;wholesale internet;wiit;wix com;worldstream;wortmann;wowrack;wp engine;wpengine;
xneelo;xserver;xtom;yisp;zare;zenlayer;zoho;zomro
"""

_WORD = re.compile(r"[^\W_]+")
_VPN = re.compile(rf"\b(?:{_names(_VPN_SERVICES)})\b|\bvpn\b")
_HOSTING_COMPANY = re.compile(rf"\b(?:{_names(_HOSTING_COMPANIES)})\b")
_HOSTING_WORD = re.compile(
    r"(?<!ec)host(?!a?els?\b)|\bserver|servers\b|(?<!\bst )cloud|\bdata ?cent|\bidc\b"
    r"|\bvps|vps\b|\bvds\b|\bcolo\b|colocation|\bcdn|\bdedi(?:cated)?\b|\bhebergement\b|\bhospedagem\b|\bseedbox"
)
"""Words that hosting companies put into their names."""
_ACCESS_WORD = re.compile(
    r"tele[ck]om|\btel\b|telefon|communication|broad ?band|\bcable|wireless|wi ?fi|mobile|cellular|fib(?:er|re|ra)"
    r"|\bisps?\b|\bwisp|internet (?:service )?provider|internet services?\b|universit|school|college|hospital|hotel"
    r"|\bbank\b|ministry|government|\bnetcom\b|\bgpon\b|\bftth\b|\bdsl\b|\bonline\b|afrihost"
)
"""Words of those who connect people: beside one of these, a word of hosting is one service of many."""
