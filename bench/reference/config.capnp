# The address, the folder of the storage and the provider come from the command line and the environment.
using Workerd = import "/workerd/workerd.capnp";

const config :Workerd.Config = (
  services = [
    (name = "main", worker = .reference),
    (name = "internet", network = (allow = ["local"])),
    (name = "storage", disk = (path = "/", writable = true)),
  ],
  sockets = [(name = "http", http = (), service = "main")],
  # `agents` imports this module, which the runtime has only where mail can be sent.
  extensions = [(modules = [(
    name = "cloudflare-internal:email",
    internal = true,
    esModule = "class EmailMessage {}\nexport default { EmailMessage };",
  )])],
);

const reference :Workerd.Worker = (
  modules = [(name = "worker", esModule = embed "bundle.js")],
  compatibilityDate = "2026-06-11",
  compatibilityFlags = ["nodejs_compat"],
  bindings = [
    (name = "PROVIDER_URL", fromEnvironment = "PROVIDER_URL"),
    (name = "Assistant", durableObjectNamespace = "Assistant"),
  ],
  durableObjectNamespaces = [(className = "Assistant", uniqueKey = "assistant", enableSql = true)],
  durableObjectStorage = (localDisk = "storage"),
);
