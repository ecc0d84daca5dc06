// Reads lists of events from the standard input, one a line, and says what the published schemas find wrong.
import { EventSchemas } from "@ag-ui/core/schemas"

const text = await new Response(Deno.stdin.readable).text()
const wrong = []
for (const line of text.split("\n").filter(Boolean)) {
  for (const event of JSON.parse(line)) {
    const found = EventSchemas.safeParse(event)
    if (!found.success) wrong.push({ event, issues: found.error.issues })
  }
}
console.log(JSON.stringify(wrong))
