"""Forms of dates, by language, where Django's own differ from those of our pages."""
