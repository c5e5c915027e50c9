"""Free-form signals in, one canonical `Report` out, whatever library collected them (docs/report-fields.md).

What may live here: reading report shapes. One module per collector (`fingerprintjs`, `thumbmark`, `fpscanner`, `botd`,
`probes`, `native`, `plain`) with its table of fields, the engine that reads through a table (`table`), the converters
that they share (`values`, `canonical`, `leaves`), and what a browser garbles on purpose (`masks`). Nothing outside this
package knows the shape of a report.
"""

from svc.identify.report.reader import read_report

__all__ = ["read_report"]
