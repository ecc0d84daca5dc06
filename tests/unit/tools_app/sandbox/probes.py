"""Ways out of the sandbox that code may try."""

SECRET = "canary-of-the-escape-tests"
PROBES = {
    "read": 'return await Deno.readTextFile("FILE")',
    "read sync": 'return Deno.readTextFileSync("FILE")',
    "open": 'return (await Deno.open("FILE")).readable',
    "node fs": 'return (await import("node:fs")).readFileSync("FILE", "utf8")',
    "node process": 'return process.binding("fs").readFileUtf8("FILE")',
    "import literal": 'return (await import("file://FILE", {with: {type: "json"}})).default',
    "import text": 'return (await import("file://FILE", {with: {type: "text"}})).default',
    "import computed": 'const u = "file:" + "//FILE"; return (await import(u, {with: {type: "json"}})).default',
    "import in data": "return (await import(\"data:application/javascript,import x from 'file://FILE' with "
    "{type: 'json'}; export default x\")).default",
    "import in typescript": "return (await import(\"data:application/typescript,import x from 'file://FILE' with "
    "{type: 'text'}; export default (x as string)\")).default",
    "import in blob": "return (await import(URL.createObjectURL(new Blob([\"import x from 'file://FILE' with {type: "
    '\'json\'}; export default x"], {type: "application/javascript"})))).default',
    "worker": 'const w = new Worker("file://FILE", {type: "module"}); await new Promise((_, r) => w.onerror = r)',
    "fetch of a file": 'return await (await fetch("file://FILE")).text()',
    "require": 'return (await import("node:module")).createRequire("file:///")("FILE")',
    "environment": "return Deno.env.toObject()",
    "process environment": "if (Object.keys(process.env).length) return {...process.env}; throw new Error()",
    "proc": 'return await Deno.readTextFile("/proc/self/environ")',
    "proc of the parent": 'return await Deno.readTextFile("/proc/" + Deno.ppid + "/environ")',
    "fetch": 'return await (await fetch("http://127.0.0.1:PORT/")).text()',
    "connect": 'return (await Deno.connect({hostname: "127.0.0.1", port: PORT})).rid',
    "connect by unix socket": 'return await Deno.connect({transport: "unix", path: "/tmp/x.sock"})',
    "websocket": 'return await new Promise((ok, no) => { const s = new WebSocket("ws://127.0.0.1:PORT/"); '
    "s.onopen = () => ok(1); s.onerror = no })",
    "node net": 'const net = await import("node:net"); return await new Promise((ok, no) => '
    'net.connect(PORT, "127.0.0.1", () => ok(1)).on("error", no))',
    "listen": "return Deno.listen({port: 0}).addr",
    "dns": 'return await Deno.resolveDns("localhost", "A")',
    "remote import": 'return await import("http://127.0.0.1:PORT/x.js")',
    "npm import": 'return await import("npm:lodash")',
    "command": 'return await new Deno.Command("/bin/true").output()',
    "node child": 'return (await import("node:child_process")).execSync("id").toString()',
    "ffi": 'return Deno.dlopen("libc.so.6", {getpid: {parameters: [], result: "i32"}})',
    "kill": "Deno.kill(Deno.ppid, 'SIGKILL'); return 1",
    "system": "return Deno.hostname()",
    "write": 'await Deno.writeTextFile("/tmp/sandbox-escape", "x"); return 1',
    "temporary file": "return await Deno.makeTempFile()",
    "permissions": 'const {state} = await Deno.permissions.request({name: "read"}); '
    'if (state === "granted") return 1; throw state',
    "worker with permissions": 'new Worker("data:application/javascript,", {type: "module", deno: {permissions: '
    "{read: true}}}); return 1",
    "prototype of the constructor": "const F = (async () => {}).constructor; "
    "return await F(\"return Deno.readTextFile('FILE')\")()",
    "prototype of a tool": "return await tools.x.constructor.constructor(\"return Deno.readTextFileSync('FILE')\")()",
    "eval": "return await (0, eval)(\"Deno.readTextFile('FILE')\")",
    "vm": "return (await import('node:vm')).runInNewContext('d.readTextFileSync(\"FILE\")', {d: Deno})",
    "wasi": 'return new ((await import("node:wasi")).default)({version: "preview1", preopens: {"/": "/"}})',
    "inspector": "return (await import('node:inspector')).open(9229)",
    "heap snapshot": "return (await import('node:v8')).writeHeapSnapshot('/tmp/sandbox-escape')",
    "sqlite": "return new (await import('node:sqlite')).DatabaseSync('FILE')",
    "internals": "const core = Deno[Deno.internal].core; return core.ops.op_read_file_text_sync('FILE')",
}
