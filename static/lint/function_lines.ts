// A function of the page has at most MAX_LINES lines, comments and inner functions included: what is longer is split.

const MAX_LINES = 80;

type Lined = Deno.lint.Node & { range: [number, number] };

function check(context: Deno.lint.RuleContext, node: Lined): void {
  const lines = context.sourceCode.text.slice(node.range[0], node.range[1]).split("\n").length;
  if (lines > MAX_LINES) context.report({ node, message: `A function of ${lines} lines: at most ${MAX_LINES}.` });
}

export default {
  name: "think-lines",
  rules: {
    "function-lines": {
      create(context) {
        return {
          FunctionDeclaration: (node) => check(context, node),
          FunctionExpression: (node) => check(context, node),
          ArrowFunctionExpression: (node) => check(context, node),
        };
      },
    },
  },
} satisfies Deno.lint.Plugin;
