# What zsh proposes for each line given, as somebody would see it who presses Tab there: "<candidate>", a line each,
# below the line itself. Nothing is inserted, so the next line begins anew.
zmodload zsh/zpty
zpty shell zsh -f -i
zpty -w shell 'PROMPT=; unsetopt zle_bracketed_paste; autoload -Uz compinit; compinit -u -D
eval "$(capstan completion zsh)"
compadd() {
  if [[ ${@[1,(i)(-|--)]} != *-[OAD]\ * ]]; then
    local -a hits; builtin compadd -A hits "$@"; [[ -n $hits ]] && print -l "<"${^hits}">"
  fi
  builtin compadd "$@"
}
finish() { compstate[insert]=; compstate[list]=; print -n "E""ND"; }
tab() { comppostfuncs=(finish); zle complete-word; }
zle -N tab; bindkey "^I" tab; print "REA""DY"'
zpty -r shell seen '*READY*'
for line in "$@"; do
  zpty -w -n shell "$line"$'\t'
  zpty -r shell seen '*END*'
  print -r -- "$line"
  print -r -- "$seen" | grep -o '<.*>'
  zpty -w -n shell $'\C-u'
done
zpty -d shell
