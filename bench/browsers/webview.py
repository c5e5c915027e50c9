"""A program that shows one page in a web view of Qt: python webview.py [--private] [--user-agent TEXT] PROFILE URL

Runs in an environment of its own, with PyQt6-WebEngine and nothing of the service: see `undriven.py`.
"""

from __future__ import annotations

import argparse
import sys

from PyQt6.QtCore import QUrl
from PyQt6.QtWebEngineCore import QWebEnginePage, QWebEngineProfile
from PyQt6.QtWebEngineWidgets import QWebEngineView
from PyQt6.QtWidgets import QApplication

parser = argparse.ArgumentParser()
parser.add_argument("--private", action="store_true", help="keep nothing, as Qt does unless a program names a profile")
parser.add_argument("--user-agent", help="in place of the one that names QtWebEngine")
parser.add_argument("profile")
parser.add_argument("url")
options = parser.parse_args()

application = QApplication(sys.argv[:1])
profile = QWebEngineProfile() if options.private else QWebEngineProfile("program")
if not options.private:
    profile.setPersistentStoragePath(options.profile)
if options.user_agent:
    profile.setHttpUserAgent(options.user_agent)
page = QWebEnginePage(profile)
view = QWebEngineView()
view.setPage(page)
view.resize(1200, 800)
view.load(QUrl(options.url))
view.show()
sys.exit(application.exec())
