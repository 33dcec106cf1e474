"""The sections of a page, one file each: functions from a report to markup."""
