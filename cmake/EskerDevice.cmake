# Device languages.
