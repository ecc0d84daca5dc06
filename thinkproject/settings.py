"""The single settings file; every environment variable is read here.

Two modes: without `ALLOWED_HOSTS` this is a server of one's own machine (`make run`), with it a production server
(`IS_PRODUCTION`), which needs a `SECRET_KEY`, speaks HTTPS and has hashed static files.
"""

import os
import sys
from pathlib import Path

from csp.constants import NONCE, NONE, SELF

from thinkproject import connections, logs
from thinkproject.config import env, paths
from thinkproject.config.app_settings import app_settings, check_environment, present

BASE_DIR = Path(__file__).resolve().parent.parent

# --- The installation -------------------------------------------------------------------------------------------

DATA_DIR = Path(
    env.env_text(
        "THINK_DATA_DIR",
        str(BASE_DIR / "var"),
        doc="Where everything embedded lives; default `./var`. Set it to a disk that is backed up.",
    )
).resolve()
PORT = env.env_int(
    "PORT",
    8000,
    minimum=1,
    maximum=65535,
    doc="Port of the web server of `make run`; default 8000. Set it where that is taken.",
)
BIND = env.env_text(
    "THINK_BIND", "127.0.0.1", doc="Address on which `make run` listens. Set it to be reached from elsewhere."
)
NO_RELOAD = env.env_bool(
    "THINK_NO_RELOAD",
    default=False,
    doc="Do not restart web and worker when a file changes. Set it where nothing is edited.",
)
SETTINGS_MODULE = env.env_text(
    "THINK_SETTINGS",
    "thinkproject.settings",
    doc="Settings module of `make run`; yours begins with `from thinkproject.settings import *`. Set it where "
    "variables do not suffice.",
)
SKIPS_LOCAL_MODEL = env.env_bool(
    "THINK_SKIP_LOCAL_MODEL",
    default=False,
    doc="Do not install or start the small local model. Set it where another answers.",
)
WEB_PROCESSES = env.env_int(
    "THINK_WEB_PROCESSES", 0, doc="Web processes of `make run`; 0: by cores and memory. Set it on a shared machine."
)
WORKER_PROCESSES = env.env_int(
    "THINK_WORKER_PROCESSES", 0, doc="Workers of `make run`; 0: by cores and memory. Set it on a shared machine."
)
WORKER_THREADS = env.env_int(
    "THINK_WORKER_THREADS",
    200,
    minimum=1,
    doc="Turns that each worker of `make run` runs at a time. Lower it for heavy tools.",
)
WEB_SERVER = env.env_choice(
    "THINK_WEB_SERVER",
    ("uvicorn", "daphne"),
    doc="Server of the web processes: `uvicorn` (default) or `daphne`. Set it where you know that one.",
)
ALLOWED_HOSTS = env.env_list("ALLOWED_HOSTS", doc="Host names of a production server. Set it to go into production.")
IS_PRODUCTION = bool(ALLOWED_HOSTS)
if not IS_PRODUCTION:
    ALLOWED_HOSTS = ["127.0.0.1", "localhost", "[::1]"]
DEBUG = env.env_bool(
    "THINK_DEBUG", default=False, doc="Django's debug pages; refused in production. Set it to develop."
)
if DEBUG and IS_PRODUCTION:
    raise env.EnvError("THINK_DEBUG shows internals to everybody; unset it where ALLOWED_HOSTS is set.")
SECRET_KEY = env.env_secret(
    "SECRET_KEY", doc="Signs sessions; made once and kept in the data directory. Set it in production."
)
if not SECRET_KEY:
    if IS_PRODUCTION:
        raise env.EnvError("SECRET_KEY (or SECRET_KEY_FILE) is required where ALLOWED_HOSTS is set.")
    SECRET_KEY = env.kept_secret(DATA_DIR / "secret_key")

# --- Applications -----------------------------------------------------------------------------------------------

THINK_APPS = env.env_list("THINK_APPS", doc="Further Django apps, comma-separated. Set it to serve their `agents.py`.")
if "start_agent" in sys.argv[1:2]:  # which makes one of them
    THINK_APPS = present(THINK_APPS)
INSTALLED_APPS = [
    *(["daphne"] if "runserver" in sys.argv[1:2] else []),  # for its ASGI `runserver`; Twisted is slow to load
    "thinkproject.apps.ThinkAdminConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "channels",
    "csp",
    "thinkproject.apps.SignInAttemptsConfig",
    "corsheaders",
    "ninja",
    "thinkproject",
    "fibers",
    "sessions_app",
    "tools_app",
    "chat",
    *THINK_APPS,
]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "corsheaders.middleware.CorsMiddleware",
    "csp.middleware.CSPMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "thinkproject.web.languages.LanguageMiddleware",
    "thinkproject.web.time_zones.TimeZoneMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "axes.middleware.AxesMiddleware",  # the last one: it replaces the answer to a refused attempt to sign in
]
AUTHENTICATION_BACKENDS = [
    "axes.backends.AxesStandaloneBackend",  # the first one: it refuses before a password is compared
    "django.contrib.auth.backends.ModelBackend",
]
ROOT_URLCONF = "thinkproject.urls"
ASGI_APPLICATION = "thinkproject.asgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "csp.context_processors.nonce",
            ]
        },
    }
]

# --- Database, Redis, Celery ------------------------------------------------------------------------------------

DATABASE_URL = env.env_secret(
    "DATABASE_URL", doc="The database; default SQLite in the data directory. Set it in production."
)
DATABASE_POOL_SIZE = env.env_int(
    "THINK_DATABASE_POOL_SIZE",
    20,
    minimum=2,
    doc="PostgreSQL connections of one process at most. Lower it where the server has few.",
)
DATABASES = {"default": connections.database(DATABASE_URL, DATA_DIR, pool_size=DATABASE_POOL_SIZE)}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

REDIS_URL = env.env_secret("REDIS_URL", doc="A Redis or Valkey; default the embedded one. Set it in production.")
USES_EMBEDDED_REDIS = not REDIS_URL
REDIS_URL = connections.redis_address(REDIS_URL) or paths.redis_url(DATA_DIR)
CHANNEL_LAYERS = {
    "default": {
        "BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer",
        "CONFIG": {"hosts": [{"address": REDIS_URL}], "prefix": "think"},
    }
}
CACHES = {
    "default": {
        "BACKEND": "django.core.cache.backends.redis.RedisCache",
        "LOCATION": REDIS_URL,
        "OPTIONS": {"socket_connect_timeout": 2, "socket_timeout": 2},
    }
}
CELERY_BROKER_URL = connections.broker_address(REDIS_URL)
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
# Messages that a worker has taken are not kept in Redis until their task begins: the sweeper sends lost ones again, and
# keeping them cost a third of what a worker spends on a turn.
CELERY_BROKER_TRANSPORT_OPTIONS: dict[str, object] = {"ack_emulation": False, "socket_keepalive": True}
CELERY_TASK_SERIALIZER = "json"
CELERY_ACCEPT_CONTENT = ["json"]
CELERY_TASK_IGNORE_RESULT = True  # the fiber's row is the result
CELERY_TASK_ACKS_LATE = False  # leases recover, not the broker; a worker that holds messages dies with a lost Redis
CELERY_TASK_DEFAULT_QUEUE = "think"
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_WORKER_REDIRECT_STDOUTS = False
CELERY_TIMEZONE = "UTC"
CELERY_BEAT_SCHEDULE = {  # an expired task is dropped: the next one comes anyway
    "sweep": {"task": "fibers.sweep", "schedule": 60.0, "options": {"expires": 60}},
    "prune": {"task": "think.prune", "schedule": 3600.0, "options": {"expires": 3600}},
}

# --- Models -----------------------------------------------------------------------------------------------------

OPENAI_API_KEY = env.env_secret("OPENAI_API_KEY", doc="Key for the model server. Set it for a server that asks.")
OPENAI_BASE_URL = env.env_text(
    "OPENAI_BASE_URL", doc="An OpenAI-compatible server, `http://127.0.0.1:11434/v1`. Set it for your own."
)
THINK_MODEL = env.env_text(
    "THINK_MODEL",
    doc="The model `default` stands for, as `provider/model`; of several, comma-separated, the next answers where one "
    "fails. Set it to choose who answers.",
)
THINK_MODEL_CHOICE_FILE = str(DATA_DIR / "model.json")  # what discovery chose at start

# --- Web --------------------------------------------------------------------------------------------------------

THINK_ALLOWED_ORIGINS = env.env_list(
    "THINK_ALLOWED_ORIGINS", doc="Other origins whose pages may use API and sockets. Set it for a page of your own."
)
CORS_ALLOWED_ORIGINS = THINK_ALLOWED_ORIGINS  # by name and never `*`; the others get no header
CORS_URLS_REGEX = r"^/(?!v1/stream/)" if THINK_ALLOWED_ORIGINS else r"^(?!)"  # without any, no answer varies by origin
CORS_ALLOW_CREDENTIALS = True
CORS_ALLOW_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
CORS_ALLOW_HEADERS = (
    "Authorization",
    "Content-Type",
    "Idempotency-Key",
    "Last-Event-ID",
    "Range",
    "X-CSRFToken",
    "X-Time-Zone",
)
CORS_EXPOSE_HEADERS = ("Content-Range", "Location", "Retry-After")
CORS_PREFLIGHT_MAX_AGE = 600
USES_HTTPS = env.env_bool(
    "THINK_HTTPS",
    default=IS_PRODUCTION,
    doc="Secure cookies, redirect and HSTS. Set it to 0 where a proxy does so otherwise.",
)
TRUSTS_PROXY = env.env_bool(
    "THINK_TRUST_PROXY",
    default=False,
    doc="Believe `X-Forwarded-Proto` and `-For`. Set it behind a proxy that sets them.",
)
SECURE_HSTS_SECONDS = (
    env.env_int("THINK_HSTS_SECONDS", 3600, doc="How long browsers insist on HTTPS. Raise it once HTTPS works.")
    * USES_HTTPS
)
SECURE_SSL_REDIRECT = USES_HTTPS
SECURE_REDIRECT_EXEMPT = [r"^health/"]  # probes speak plain HTTP to the process
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if TRUSTS_PROXY else None
SILENCED_SYSTEM_CHECKS = ["security.W005", "security.W021"]  # HSTS for subdomains and preload: the operator's choice
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
_suffix = paths.directory_hash(DATA_DIR)  # cookies know no ports: two copies on one machine must not share them
SESSION_COOKIE_NAME = f"think_session_{_suffix}"
CSRF_COOKIE_NAME = f"think_csrf_{_suffix}"
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = USES_HTTPS
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = CSRF_COOKIE_SAMESITE = "Lax"
CSRF_TRUSTED_ORIGINS = THINK_ALLOWED_ORIGINS
LOGIN_URL = "login"
LOGIN_REDIRECT_URL = "/"
LOGOUT_REDIRECT_URL = "/"
AXES_HANDLER = "chat.access.sign_in_attempts.SignInAttempts"  # the limits are THINK_SIGN_IN_…
AXES_CLIENT_IP_CALLABLE = "chat.access.client_network.client_network"
AXES_LOCKOUT_CALLABLE = "chat.access.sign_in_attempts.locked_response"
AXES_LOCKOUT_PARAMETERS = [["username", "ip_address"], "ip_address"]
AXES_RESET_COOL_OFF_ON_FAILURE_DURING_LOCKOUT = False  # else an attacker prolongs a lock by going on
AXES_DISABLE_ACCESS_LOG = True
AXES_VERBOSE = False
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in ("UserAttributeSimilarityValidator", "MinimumLengthValidator", "CommonPasswordValidator")
]
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [NONE],
        "script-src": [SELF, NONCE],
        "style-src": [SELF, NONCE],
        "img-src": [SELF, "data:", "blob:"],
        "font-src": [SELF],
        "media-src": [SELF, "blob:"],
        "connect-src": [SELF],
        "manifest-src": [SELF],
        "worker-src": [SELF],
        "frame-src": [SELF],
        "form-action": [SELF],
        "frame-ancestors": [NONE],
        "base-uri": [NONE],
        "object-src": [NONE],
    }
}

# --- Files ------------------------------------------------------------------------------------------------------

STATIC_URL = "static/"
STATIC_ROOT = BASE_DIR / "staticfiles"
MEDIA_ROOT = DATA_DIR / "files"  # never served by address: the API checks who asks
_static_storage = (
    "thinkproject.web.static_storage.HashedOnceStorage"
    if IS_PRODUCTION
    else "django.contrib.staticfiles.storage.StaticFilesStorage"
)
STORAGES = {
    "default": {
        "BACKEND": "django.core.files.storage.FileSystemStorage",
        "OPTIONS": {"location": str(MEDIA_ROOT), "file_permissions_mode": 0o600, "directory_permissions_mode": 0o700},
    },
    "staticfiles": {"BACKEND": _static_storage},
}
DATA_UPLOAD_MAX_MEMORY_SIZE = 16 * 1024 * 1024  # the published client sends its whole window each time

# --- The rest ---------------------------------------------------------------------------------------------------

USE_TZ = True
FORMAT_MODULE_PATH = "thinkproject.formats"
TIME_ZONE = "UTC"
LANGUAGE_CODE = "en"
LANGUAGES = [("en", "English"), ("de", "Deutsch"), ("es", "Español"), ("ar", "العربية")]  # docs/howto/translate.md
LANGUAGE_COOKIE_NAME = f"think_language_{_suffix}"
LANGUAGE_COOKIE_SAMESITE = "Lax"
LANGUAGE_COOKIE_SECURE = USES_HTTPS
HAS_MADE_UP_LANGUAGES = env.env_bool(
    "THINK_MADE_UP_LANGUAGES",
    default=False,
    doc="Offer `en-xa` and `ar-xb`, made up from English. Set it to test translations.",
)
if HAS_MADE_UP_LANGUAGES:
    LANGUAGES += [("en-xa", "English, accented and longer"), ("ar-xb", "English from right to left")]
LOG_LEVEL = env.env_text(
    "THINK_LOG_LEVEL", "INFO", doc="How much to log: DEBUG, INFO, WARNING, ERROR. Set it to DEBUG to find a cause."
).upper()
LOG_FORMAT = env.env_text(
    "THINK_LOG_FORMAT", "text", doc="`text`, or `json` with an object a line. Set it for collectors of logs."
)
LOGGING = logs.configuration(LOG_LEVEL, LOG_FORMAT, secrets=[SECRET_KEY, OPENAI_API_KEY, DATABASE_URL])

# Values of the apps' own settings (`conf*.py`), and the refusal of undeclared keys.
_below_data = {"THINK_SANDBOX_PACKAGES_DIR": str(DATA_DIR / "sandbox")}
globals().update(_below_data | app_settings(INSTALLED_APPS, os.environ, taken=globals()))
check_environment(os.environ)
