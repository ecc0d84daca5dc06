// A rule for the page's components: whatever a person sees or hears comes from the message catalogue, so a literal in its place
// is an error. `deno lint` runs it.

const SPOKEN = new Set([
  "aria-label",
  "aria-description",
  "aria-roledescription",
  "alt",
  "label",
  "placeholder",
  "title",
]);
const WORDED = new Set(["confirm", "detail", "hint", "label", "note", "text", "title"]); // fields of what is drawn
const SAYING = new Set(["say", "show"]); // of notices and the live region
const IS_KEY = /^[a-z-]+\.[a-z0-9-]+$/; // of a message: a component looks it up
const HAS_WORDS = /\p{L}{2,}/u;
const MESSAGE = 'Text that people see belongs in static/src/app/messages: write t("area.name").';

/** All texts that an expression may come to, as far as they stand there. */
function literalsOf(node: Deno.lint.Node | null | undefined): string {
  switch (node?.type) {
    case "Literal":
      return typeof node.value === "string" ? node.value : "";
    case "TemplateLiteral":
      return node.quasis.map((piece) => piece.cooked ?? "").join(" ");
    case "ConditionalExpression":
      return `${literalsOf(node.consequent)} ${literalsOf(node.alternate)}`;
    case "LogicalExpression":
      return `${literalsOf(node.left)} ${literalsOf(node.right)}`;
    case "BinaryExpression":
      return node.operator === "+" ? `${literalsOf(node.left)} ${literalsOf(node.right)}` : "";
    default:
      return "";
  }
}

const plugin: Deno.lint.Plugin = {
  name: "page",
  rules: {
    "visible-text": {
      create(context) {
        if (!context.filename.includes("/static/src/")) return {}; // tests and examples say what they like
        const refuse = (node: Deno.lint.Node, text: string) => {
          if (HAS_WORDS.test(text) && !IS_KEY.test(text)) {
            context.report({ node, message: MESSAGE, hint: `Found: ${text.trim().slice(0, 60)}` });
          }
        };
        return {
          JSXText(node) {
            refuse(node, node.value);
          },
          JSXExpressionContainer(node) {
            if (node.parent.type === "JSXAttribute") return;
            refuse(node, literalsOf(node.expression));
          },
          JSXAttribute(node) {
            const name = node.name.type === "JSXIdentifier" ? node.name.name : "";
            if (!SPOKEN.has(name) || !node.value) return;
            const value = node.value.type === "JSXExpressionContainer" ? node.value.expression : node.value;
            refuse(node, literalsOf(value));
          },
          Property(node) {
            const name = node.key.type === "Identifier" ? node.key.name : "";
            if (WORDED.has(name)) refuse(node, literalsOf(node.value).match(/\S+\s\S+/)?.[0] ?? ""); // a single word may be a key
          },
          CallExpression(node) {
            const callee = node.callee;
            if (callee.type !== "MemberExpression" || callee.property.type !== "Identifier") return;
            if (!SAYING.has(callee.property.name)) return;
            refuse(node, literalsOf(node.arguments[0]));
          },
        };
      },
    },
  },
};

export default plugin;
