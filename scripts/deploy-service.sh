#!/bin/sh
# Deploys one service of a checkout on this node as a person would: from its directory, with the files and the project name
# of a hand-run deploy, and with containers that are made anew. It never builds, never removes orphans, never asks git.
#
#   scripts/deploy-service.sh [--force-recreate] [--node NODE] [--checkout DIRECTORY] [--config DIRECTORY] SERVICE
#
#   --force-recreate   always so; here since whoever calls the original says it
#   --node             whose overrides (default: REEVE_NODE, else the host's name)
#   --checkout         where services/ and hosts/ are (default: REEVE_CHECKOUT, else the current directory)
#   --config           where the machine's own files are (default: REEVE_HOMELAB_CONFIG, else /opt/homelab/config)
#
# The files, each over the one before; but the first they may be missing:
#   CHECKOUT/services/SERVICE/docker-compose.yml
#   CHECKOUT/hosts/NODE/runtime/SERVICE/docker-compose.override.yml
#   CONFIG/SERVICE/docker-compose.override.yml, with the variables of CONFIG/SERVICE/.env
# Then every container must run (or have ended with 0), be healthy where it has a health check, and
# CHECKOUT/services/SERVICE/healthcheck.sh, where there is one, must end with 0: within DEPLOY_VERIFY_SECS (default 120).
# Of two runs for one service the later one is refused.
#
# Exit: 0 done, 1 preflight: what it needs is not there or another run is at work, 2 gate: compose refuses the files,
# 3 compose could not do it, 4 what it started does not run well, 5 the engine is open to root only: the command for sudo
# is printed.
set -eu

say() { printf 'deploy-service: %s\n' "$*"; }
die() { code=$1; shift; printf 'deploy-service: %s\n' "$*" >&2; exit "$code"; }
usage() { die 1 "$1; usage: deploy-service.sh [--force-recreate] [--node NODE] [--checkout DIRECTORY] [--config DIRECTORY] SERVICE"; }

node=${REEVE_NODE:-} checkout=${REEVE_CHECKOUT:-} config=${REEVE_HOMELAB_CONFIG:-/opt/homelab/config}
verify_secs=${DEPLOY_VERIFY_SECS:-120}
# What must have held for so long is believed: an engine starts what crashes again and again.
settle_secs=3
service=
while [ $# -gt 0 ]; do
  case $1 in
    --force-recreate) ;;
    --node | --checkout | --config)
      [ -n "${2:-}" ] || usage "$1 needs a value"
      case $1 in --node) node=$2 ;; --checkout) checkout=$2 ;; --config) config=$2 ;; esac
      shift
      ;;
    -h | --help) sed -n '2,/^set -eu/{/^set -eu/d;s/^# \{0,1\}//p}' "$0"; exit 0 ;;
    -*) usage "there is no flag $1" ;;
    *) [ -z "$service" ] || usage 'one service at a time'; [ -n "$1" ] || usage 'the service has no name'; service=$1 ;;
  esac
  shift
done

# is_name TEXT: small letters, digits and single dashes between them. As a pattern of the shell, so that a line break counts.
is_name() {
  case $1 in '' | *[!abcdefghijklmnopqrstuvwxyz0123456789-]* | -* | *- | *--*) return 1 ;; esac
  [ "${#1}" -le 63 ]
}

# Nothing of a shell that this came from: a variable may name other files, another project, or have orphans removed, as
# may the .env file, which counts less than the environment.
unset CDPATH COMPOSE_FILE COMPOSE_PROJECT_NAME COMPOSE_PROFILES COMPOSE_ENV_FILES COMPOSE_PATH_SEPARATOR COMPOSE_IGNORE_ORPHANS
export COMPOSE_REMOVE_ORPHANS=false
PATH=$PATH:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin

# bounded SECONDS COMMAND: in the process group of this script, so that whoever ends it ends the command as well.
bounded() { timeout --foreground -k 5 "$@"; }

check_words() {
  [ -n "$service" ] || usage 'which service'
  is_name "$service" || die 1 'the name of the service must be small letters and digits with single dashes between them'
  [ -n "$node" ] || node=$(uname -n)
  case $node in *[!A-Za-z0-9._-]* | .* | -*) die 1 'the name of the node must be letters, digits, dots and dashes' ;; esac
  case $verify_secs in '' | *[!0-9]* | ?????*) die 1 'DEPLOY_VERIFY_SECS must be a number of seconds' ;; esac
  [ -d "${checkout:=$PWD}" ] || die 1 "there is no checkout $checkout"
  checkout=$(cd "$checkout" && pwd)
  directory=$checkout/services/$service
  [ -f "$directory/docker-compose.yml" ] || die 1 "there is no file $directory/docker-compose.yml"
  [ -r "$directory" ] || die 1 "cannot read the directory $directory"
}

# The directory's own lock, since a new compose file would have a new one. Docker and compose hold it too, so that it is not
# free while they go on after a kill of this script alone.
take_lock() {
  exec 9<.
  flock -n 9 && return
  [ $? -eq 1 ] && die 1 "another deploy of $service is under way"
  die 1 "cannot lock the directory $directory"
}

check_engine() {
  command -v docker >/dev/null || die 1 'there is no docker'
  # Both in one: a client alone answers as well.
  answer=$(bounded 30 docker version --format '{{.Server.Version}}' </dev/null 2>&1) && return
  case $answer in
    *'permission denied'*)
      [ "$(id -u)" -eq 0 ] || die 5 "the engine is open to root only: sudo $0 --node $node --checkout $checkout --config $config $service"
      ;;
  esac
  die 1 "the engine does not answer: $(printf '%s' "$answer" | tr '\n' ' ')"
}

# Sets `compose` to `v2` or `v1`.
find_compose() {
  if bounded 30 docker compose version </dev/null >/dev/null 2>&1; then
    compose=v2
  elif command -v docker-compose >/dev/null; then
    compose=v1
  else
    die 1 'there is neither docker compose nor docker-compose'
  fi
}

compose() {
  if [ "$compose" = v2 ]; then docker compose "$@" </dev/null; else docker-compose "$@" </dev/null; fi
}

# Sets the arguments that name the files. Compose runs in the directory of the service, whose relative paths so mean the
# same as in a deploy by hand.
name_files() {
  env_file=$config/$service/.env
  env_option='' machine='' runtime=$checkout/hosts/$node/runtime/$service/docker-compose.override.yml
  [ -f "$runtime" ] || runtime=
  [ ! -f "$config/$service/docker-compose.override.yml" ] || machine=$config/$service/docker-compose.override.yml
  [ ! -f "$env_file" ] || env_option=--env-file
}

# with_files ARGUMENTS: compose with the files, in their order.
with_files() {
  set -- -f docker-compose.yml ${runtime:+-f "$runtime"} ${machine:+-f "$machine"} "$@"
  [ -z "$env_option" ] || set -- --env-file "$env_file" "$@"
  compose "$@"
}

# The name that compose itself would choose, to be said explicitly from here on. What `config` prints has secrets in it.
choose_project() {
  if [ "$compose" = v2 ]; then
    project=$(printf '%s\n' "$rendered" | sed -n 's/^name: *"\{0,1\}\([^"]*\)"\{0,1\}$/\1/p' | head -n 1)
  else
    [ -n "$env_option" ] || env_file=.env
    project=$(read_variable COMPOSE_PROJECT_NAME "$env_file")
    project=$(printf '%s' "${project:-$service}" | tr '[:upper:]' '[:lower:]' | tr -cd '_a-z0-9-')
  fi
  [ -n "$project" ] || project=$service
}

# read_variable NAME FILE: its last value, without quotes.
read_variable() {
  [ -f "$2" ] || return 0
  sed -n "s/^[[:blank:]]*\(export[[:blank:]]\{1,\}\)\{0,1\}$1[[:blank:]]*=[[:blank:]]*//p" "$2" | tail -n 1 |
    sed "s/[[:space:]]*\$//; s/^\"\(.*\)\"\$/\1/; s/^'\(.*\)'\$/\1/"
}

check_files() {
  # Its errors go to stderr; its answer has secrets in it.
  rendered=$(with_files config) || die 2 "compose refuses the files of $service"
  choose_project
  unset rendered
  names=$(with_files -p "$project" config --services) || die 2 "compose refuses the files of $service"
  [ -n "$names" ] || die 2 "the files of $service name no service"
}

# The containers of the services in the files, by their labels: what else has the same project name is somebody else's.
list_containers() {
  for name in $names; do
    bounded 10 docker ps -aq --no-trunc --filter "label=com.docker.compose.project=$project" \
      --filter "label=com.docker.compose.service=$name" --filter label=com.docker.compose.oneoff=False </dev/null || return 1
  done
}

# Sets `state` to good, waiting or bad, `why` for people, and `seen` to what must not change while it settles.
look() {
  state=good why='' seen='' running=0
  containers=$(list_containers) || { state=waiting why='the engine does not answer'; return; }
  [ -n "$containers" ] || { state=bad why='there is no container'; return; }
  # shellcheck disable=SC2086 # ids
  seen=$(bounded 10 docker inspect --type container --format \
    '{{.Name}} {{.State.Status}} {{.State.ExitCode}} {{.RestartCount}} {{if .State.Health}}{{.State.Health.Status}}{{else}}none{{end}} {{.State.StartedAt}}' \
    $containers </dev/null 2>/dev/null) || { state=waiting why='a container has gone meanwhile'; return; }
  while read -r name status code _ health _; do judge "${name#/}" "$status" "$code" "$health"; done <<SEEN
$seen
SEEN
  [ "$state" != good ] || [ "$running" -gt 0 ] || { state=bad why='none of its containers runs'; }
}

# judge NAME STATUS CODE HEALTH
judge() {
  case $2.$4 in
    running.none | running.healthy) running=$((running + 1)) ;;
    running.*) wait_for "$1 is ${4}" ;;
    exited.*) [ "$3" -eq 0 ] || { state=bad; tell "$1 has ended with $3"; } ;;
    dead.*) state=bad; tell "$1 is dead" ;;
    *) wait_for "$1 is $2" ;;
  esac
}

wait_for() { [ "$state" = bad ] || state=waiting; tell "$1"; }
tell() { why=${why:+$why, }$1; }

# Sets `now`, in seconds that no change of the clock touches.
read_time() { read -r now _ </proc/uptime; now=${now%%.*}; }

# Ends when all is good and has been for a while, when something cannot become good any more, or when the time is over.
verify() {
  read_time
  began=$now settled='' since='' worst=
  while :; do
    look
    read_time
    if [ "$state" = good ]; then
      [ "$seen" = "$settled" ] || { settled=$seen since=$now; }
      if [ $((now - since)) -ge "$settle_secs" ]; then
        left=$((began + verify_secs - now))
        ask_healthcheck "$((left > 30 ? 30 : left < 5 ? 5 : left))" && return
        state=waiting why="healthcheck.sh ended with $healthcheck"
      fi
    else
      settled=
    fi
    # Seen twice: some engines show the end of what they are about to start again.
    [ "$state" = bad ] || worst=
    [ "$state" != bad ] || [ "$worst" != "$why" ] || die 4 "$service does not run: $why"
    [ "$state" != bad ] || worst=$why
    [ $((now - began)) -lt "$verify_secs" ] || die 4 "$service does not run well after $verify_secs seconds: ${why:-it does not stay up}"
    sleep 1
  done
}

# ask_healthcheck SECONDS: sets `healthcheck` to its exit status. What it leaves behind must not hold the lock.
ask_healthcheck() {
  [ -f healthcheck.sh ] || return 0
  healthcheck=0
  if [ -x healthcheck.sh ]; then
    bounded "$1" ./healthcheck.sh </dev/null 9<&- || healthcheck=$?
  else
    bounded "$1" sh healthcheck.sh </dev/null 9<&- || healthcheck=$?
  fi
  [ "$healthcheck" -eq 0 ]
}

check_words
cd "$directory"
take_lock
check_engine
find_compose
name_files
check_files
say "$service on $node: project $project, by compose $compose"
# --no-build: where an image is missing, compose would build it.
with_files -p "$project" up -d --force-recreate --no-build || die 3 "compose could not bring up $service (it ended with $?)"
verify
say "$service runs"
