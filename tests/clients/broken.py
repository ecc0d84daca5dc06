"""A stream that breaks in its middle, and a page that is too busy to have shown what came before."""

BROKEN = "stream 60 words at 40/s\nerror in stream after 30 chunks code context_length_exceeded"
BUSY = "for (const end = Date.now() + 2000; Date.now() < end;);"
