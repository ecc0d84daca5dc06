"""Scripts have the outputs that they have in GNU bash. One run for each group: outputs and exit codes are compared."""

import asyncio
import shutil
from pathlib import Path

import pytest

from tests.unit.tools_app.shell.conftest import Shell
from tools_app.workspace.stores.memory import MemoryWorkspace

FILES = {
    "words.txt": "pear\napple\nfig\napple\nbanana\n",
    "table.csv": "name,age\nann,31\nbob,27\ncy,44\n",
    "notes/a.md": "# A\nfirst line\nTODO one\n",
    "notes/b.md": "# B\nTODO two\nlast\n",
    "notes/deep/c.txt": "tab\tseparated\tline\n",
    "data.json": '{"items": [{"id": 1, "tag": "x"}, {"id": 2, "tag": "y"}]}\n',
    "code.py": "def f(x):\n    return x + 1\n\nprint(f(2))\n",
}
GROUPS = {
    "pipes": """
cat words.txt | sort | uniq -c | awk '{print $1, $2}'
sort -u words.txt | head -n 2 | tail -n 1
cut -d, -f2 table.csv | tail -n +2 | sort -n | paste -s -d+ -
cat words.txt words.txt | wc -l | tr -d ' '
sort words.txt | uniq -d
printf 'b 2\\na 10\\na 9\\n' | sort -k1,1 -k2,2n
echo abc | rev | tr a-z A-Z
seq 3 | xargs -I {} echo item {}
grep -v a words.txt || echo none
nl -ba words.txt | tail -n 1 | tr -s ' \\t' ' '
comm -12 <(sort words.txt) <(printf 'apple\\nfig\\n')
echo one two three | { read a b; echo "$b-$a"; }
""",
    "redirections": """
echo one > out; echo two >> out; cat out; wc -l < out | tr -d ' '
{ echo a; echo b >&2; } 2> err; cat err
ls nowhere > both 2>&1; test -s both && echo full
cat <<EOF > doc
value: $((6 * 7))
EOF
cat doc; cat <<'EOF'
$not expanded
EOF
cat <<< "here $HOME string" | wc -w | tr -d ' '
echo hidden > /dev/null; echo "left $?"
tee t1 t2 < words.txt > /dev/null; cmp -s t1 t2; diff t1 t2 && echo same
exec 3> third; echo three >&3; exec 3>&-; cat third
: > empty; test -s empty || echo empty
""",
    "loops": """
for i in 1 2 3; do [ $i -eq 2 ] && continue; echo n$i; done
for f in notes/*.md; do echo "$(basename $f .md): $(grep -c TODO $f)"; done
i=0; while [ $i -lt 3 ]; do i=$((i + 1)); done; echo $i
until [ $i -eq 0 ]; do i=$((i - 1)); done; echo $i
while IFS=, read -r name age; do echo "$age:$name"; done < table.csv
for ((k = 0; k < 6; k += 2)); do printf '%d ' $k; done; echo
for w in $(cat words.txt); do case $w in a*) echo "a: $w";; *g) echo "g: $w";; *) :;; esac; done
n=0; for x in {a..c}{1,2}; do n=$((n + 1)); done; echo $n $x
while true; do break; done; echo broke
""",
    "functions": """
add() { echo $(($1 + $2)); }; add 2 3
fact() { if [ $1 -le 1 ]; then echo 1; else local r=$(fact $(($1 - 1))); echo $(($1 * r)); fi; }; fact 6
outer() { local v=inner; v2=global; }; v=outer; outer; echo $v $v2
ret() { return 3; }; ret; echo $?
args() { echo "$# $1 ${@:2}"; }; args a "b c" d
first() { echo "$1"; shift; [ $# -gt 0 ] && first "$@"; }; first x y z
nested() { inner() { echo in; }; inner; }; nested; inner
""",
    "variables": """
v=hello; echo ${v^^} ${#v} ${v:1:3} ${v/l/L} ${v//l/L} ${v%lo} ${v#he}
echo ${none:-default} ${v:+set} "${v}world"
a=(one two three); echo ${a[1]} ${#a[@]} "${a[@]:1}"; a+=(four); echo ${a[-1]}
declare -A m; m[k]=v1; m[z]=v2; for k in k z; do echo $k=${m[$k]}; done
x=5; ((x += 3)); echo $x $((x % 3)) $((2 ** 10)) $((x > 7 ? 1 : 0))
path=/a/b/file.tar.gz; echo ${path##*/} ${path%/*} ${path%%.*}
read -r p q <<< "1 2 3"; echo "$p|$q"
IFS=:; set -- $(echo a:b:c); echo $# $2
printf '%05.2f|%-5s|%x\\n' 3.14159 ab 255
echo "a\\tb" 'c\\td'; echo -e 'x\\ty'
export E=1; (E=2; echo $E); echo $E
""",
    "conditions": """
[ -f words.txt ] && echo file; [ -d notes ] && echo dir; [ -e nope ] || echo none
[[ apple == a* && 3 -lt 10 ]] && echo both
if grep -q fig words.txt; then echo found; else echo lost; fi
[[ abc123 =~ ([a-z]+)([0-9]+) ]] && echo ${BASH_REMATCH[1]} ${BASH_REMATCH[2]}
test 1 -eq 2; echo $?; ! true; echo $?
false || true && echo chain
(exit 4); echo $?
true | false | true; echo ${PIPESTATUS[1]}
set -o pipefail; false | true; echo $?; set +o pipefail
[ "$(echo x)" = x -a -n "y" ] && echo and
""",
    "globs": """
echo *.txt; echo notes/*.md; echo nothing*.zip
echo [cd]*; ls notes | sort; find . -name '*.md' | sort
find notes -type d | sort; find . -type f -name '[a-c].*' | sort
shopt -s globstar; echo notes/**/*.txt
mkdir -p g/x; touch g/1 g/2 g/.hid; ls g | wc -l | tr -d ' '; ls -A g | wc -l | tr -d ' '
echo {x,y}.{1,2}; echo g/?
rm -r g; ls -d g 2> /dev/null || echo gone
""",
    "texts": """
sed -n '2p' words.txt; sed 's/apple/APPLE/' words.txt | sort -u; sed -e '/fig/d' -e '1d' words.txt
sed -i 's/pear/plum/' words.txt; head -n 1 words.txt
awk -F, 'NR > 1 { sum += $2 } END { print sum, NR }' table.csv
awk '{ count[$1]++ } END { for (w in count) print w, count[w] }' words.txt | sort
awk 'BEGIN { printf "%s-%03d\\n", toupper("ab"), 7 }'
grep -n TODO notes/*.md; grep -rl TODO notes | sort; grep -o '[a-z]*an[a-z]*' words.txt; grep -c . words.txt
grep -A1 '# B' notes/b.md; grep -iE '^(todo|last)' notes/b.md
tr -d aeiou < words.txt; fold -w 3 <<< abcdefg; expand notes/deep/c.txt | tr -s ' '
jq -r '.items[] | "\\(.id)=\\(.tag)"' data.json; jq '.items | length' data.json
diff words.txt code.py > /dev/null; echo $?
column -t -s, table.csv | head -n 1 | tr -s ' '
join -t, <(sort table.csv) <(printf 'ann,x\\nbob,y\\n'); tac words.txt | head -n 1
base64 <<< hello; echo aGVsbG8K | base64 -d; printf abc | md5sum; printf abc | sha256sum | cut -c1-16
expr 3 + 4; printf '3\\n1\\n' | sort -r; stat -c %s code.py
""",
    "files": """
mkdir -p a/b/c; cp words.txt a/b; cp -r a z; ls z/b; mv a/b/words.txt a/w; ls a
rmdir a/b/c; ls a/b | wc -l | tr -d ' '; rm -rf z; [ -e z ] || echo removed
ln -s words.txt ln; readlink ln; head -n 1 ln; [ -L ln ] && echo link
touch new; [ -f new ] && echo made; cd notes; ls | head -n 1; cd ..; (cd notes/deep && ls); ls notes/deep
basename /x/y.txt .txt; dirname /x/y.txt; du -a notes/deep > /dev/null && echo du
cp nowhere x 2> /dev/null; echo $?; mkdir notes 2> /dev/null; echo $?; cat nowhere 2> /dev/null; echo $?
split -l 2 words.txt part; cat partab | head -n 1; file code.py > /dev/null; echo $?
cp words.txt "with space"; cat "with space" | wc -l | tr -d ' '; rm "with space"; chmod +x code.py; echo $?
""",
}


async def gnu(script: str, folder: Path) -> tuple[str, int]:
    program = shutil.which("bash")
    if program is None:
        pytest.skip("no GNU bash to compare with")
    process = await asyncio.create_subprocess_exec(
        program,
        "--norc",
        "-c",
        script,
        cwd=folder,
        env={"PATH": "/usr/bin:/bin", "HOME": "/", "LC_ALL": "C"},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    out, _ = await process.communicate()
    assert process.returncode is not None
    return out.decode(), process.returncode


@pytest.mark.parametrize("group", GROUPS)
async def test_scripts_do_what_they_do_in_bash(
    group: str, workspace: MemoryWorkspace, bash: Shell, tmp_path: Path
) -> None:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
        await workspace.write_file(f"/{name}", text)
    script = GROUPS[group]
    expected, code = await gnu(script, tmp_path)
    result = await bash(script)
    assert result["stdout"].splitlines() == expected.splitlines(), result["stderr"]
    assert result["exitCode"] == code
