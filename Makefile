# One command each. Everything else is in thinkproject/run/bootstrap.py, which needs only Python.
PYTHON ?= python3
BOOTSTRAP = $(PYTHON) -m thinkproject.run.bootstrap
T ?=

.PHONY: run test whole test-busy long check fix bench bench-coding chaos clients clients-newest example-usechat example-react example-assistantui example-orchestrator example-assistant clean help

help:  ## Say what there is
	@grep -E '^[a-z-]+:.*##' Makefile | sed 's/:.*## /\t/'

run:  ## Set up what is missing and start everything; Ctrl-C stops it
	@exec $(BOOTSTRAP) run

test:  ## Set up, then the cheap tests and a tenth of the costly; T=tests/unit for all tests of a part
	@exec $(BOOTSTRAP) test $(T)

whole:  ## All tests but the long ones: before a change of many parts is handed in
	@exec $(BOOTSTRAP) whole

test-busy:  ## All tests but the long ones on a busy machine, three times in random orders
	@exec $(BOOTSTRAP) test-busy

long:  ## Every test there is, on SQLite and on PostgreSQL, with more examples of each law
	@exec $(BOOTSTRAP) long $(T)

check:  ## Format, lint, types, layers, migrations, system checks, house rules
	@exec $(BOOTSTRAP) check

fix:  ## Format and mend what can be mended
	@exec $(BOOTSTRAP) fix

bench:  ## The benchmarks; prints a table
	@exec $(BOOTSTRAP) bench $(T)

bench-coding:  ## Twelve coding tasks with a model: THINK_MODEL=provider/model; without one their solutions
	@exec $(BOOTSTRAP) bench-coding $(T)

chaos:  ## The long run that kills processes at random
	@exec $(BOOTSTRAP) chaos $(T)

clients:  ## All tests of the published clients, each with both AI SDKs
	@exec $(BOOTSTRAP) clients $(T)

clients-newest:  ## Test with the newest published clients instead of the pinned ones
	@exec $(BOOTSTRAP) clients-newest $(T)

example-usechat:  ## A page with the AI SDK's useChat over HTTP; prints its address
	@exec $(BOOTSTRAP) example usechat

example-react:  ## A page with the published React hooks over a socket; prints its address
	@exec $(BOOTSTRAP) example react

example-assistantui:  ## A page with assistant-ui and the versions of each message; prints its address
	@exec $(BOOTSTRAP) example assistantui

example-orchestrator:  ## An agent without a chat that leads others, with their live relay; prints its address
	@exec $(BOOTSTRAP) example orchestrator

example-assistant:  ## An assistant with sign-in by OAuth, shared files and memory, MCP; prints its address
	@exec $(BOOTSTRAP) example assistant

clean:  ## Remove the environment, caches and built files; keeps ./var
	@exec $(BOOTSTRAP) clean
