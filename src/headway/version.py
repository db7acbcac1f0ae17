"""The version of Headway, in one place."""

VERSION = "0.1.0"
