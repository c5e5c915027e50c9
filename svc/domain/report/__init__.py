"""Free-form signals in, one canonical `Report` out, whatever library collected them (signals.md 1).

What may live here: reading report shapes. One module per collector (`fingerprintjs`, `thumbmark`, `fpscanner`, `botd`,
`native`, `plain`), the forms that they share (`canonical`, `gpu`, `leaves`, `values`), and what a browser garbles on
purpose (`masks`). Nothing outside this package knows the shape of a report.
"""

from svc.domain.report.reader import read_report

__all__ = ["read_report"]
