#!/bin/sh
# Asking a registry for an image's manifest, or whether it lets a user in, as Enroot would. Secrets go from the
# credentials file into files of the private working directory that curl reads; none is in an argument or in what is printed.

tl_accept='application/vnd.docker.distribution.manifest.v2+json, application/vnd.docker.distribution.manifest.list.v2+json, application/vnd.oci.image.manifest.v1+json, application/vnd.oci.image.index.v1+json'

# fetch URL OPTION…: a request with the curl configuration on stdin; sets tl_code, tl_status, and tl_at: the host that
# answered in the end.
fetch() {
    tl_said=$(curl --silent --show-error --location --connect-timeout 10 --max-time 60 --config - --output ./body \
        --dump-header ./head --write-out '%{http_code} %{url_effective}' --header "Accept: $tl_accept" "$@" 2>./curl.err)
    tl_status=$?
    tl_code=${tl_said%% *}
    tl_at=$(host_of "${tl_said#* }")
}

# host_of URL
host_of() {
    tl_rest=${1#*://}
    tl_rest=${tl_rest%%[/?]*}
    printf '%s' "${tl_rest%:*}"
}

# line HOST: `HOST USER` of the credentials' line that counts for a host.
line() {
    [ -r "$tl_credentials" ] || return 0
    tl_host=$1 tl_user=$tl_wanted awk '
        $1 == "machine" && $2 == ENVIRON["tl_host"] && $3 == "login" && (ENVIRON["tl_user"] == "" || $4 == ENVIRON["tl_user"]) {
            print $2, $4
            exit
        }' "$tl_credentials"
}

# login HOST USER FORM: what that line holds, as curl's configuration (`config`) or as a netrc file's line (`netrc`).
login() {
    tl_host=$1 tl_user=$2 tl_form=$3 awk '
        $1 == "machine" && $2 == ENVIRON["tl_host"] && $3 == "login" && $4 == ENVIRON["tl_user"] {
            secret = $0
            sub(/^[ \t]*([^ \t]+[ \t]+)+password[ \t]+/, "", secret)
            sub(/[ \t]+$/, "", secret)
            if (ENVIRON["tl_form"] == "netrc") {
                print "machine", $2, "login", $4, "password", secret
            } else {
                gsub(/[\\"]/, "\\\\&", secret)
                print "user = \"" $4 ":" secret "\""
            }
            exit
        }' "$tl_credentials"
}

# Every host's line that counts. As Enroot does, curl gets them all: a registry may send a client on to another host for
# a token (nvcr.io to authn.nvidia.com), which then has to see its own.
netrc() {
    [ -r "$tl_credentials" ] || return 0
    awk '$1 == "machine" && $3 == "login" { print $2 }' "$tl_credentials" | sort -u | while read -r tl_machine; do
        tl_found=$(line "$tl_machine")
        # shellcheck disable=SC2086  # host and user
        [ -z "$tl_found" ] || login $tl_found netrc
    done
}

header() { sed -n "s/^$1: *\(.*[^[:space:]]\)[[:space:]]*\$/\1/p" ./head | tail -n 1; }
part() { printf '%s' "$tl_challenge" | sed -n "s/.*$1=\"\([^\"]*\)\".*/\1/p"; }

# manifest CONFIG: asks for it with that curl configuration; where it is not there, for the tags that the repository has, and
# where it is, for the size of its layers.
manifest() {
    fetch -- "$tl_base$tl_url" <"$1"
    if [ "$tl_status" -eq 0 ] && [ "$tl_code" = 404 ]; then
        curl --silent --fail --location --connect-timeout 10 --max-time 30 --max-filesize 4000000 --config - --output ./tags \
            -- "$tl_base${tl_url%/manifests/*}/tags/list?n=5000" <"$1" 2>/dev/null || return 0
        tr ',[]' '\n' <./tags | sed -n 's/^[[:space:]]*"\([A-Za-z0-9_][A-Za-z0-9_.-]*\)"[[:space:]]*$/>tag \1/p' | head -n 5000
    elif [ "$tl_status" -eq 0 ] && [ "$tl_code" = 200 ]; then
        measure "$1"
    fi
}

# measure CONFIG: lines `size ARCH BYTES` with what the layers of ./body have, compressed, for each of tl_arches (words of
# `uname -m`). A list of manifests is followed to the architecture's own.
measure() {
    for tl_arch in ${tl_arches-}; do
        case $tl_arch in x86_64) tl_named=amd64 ;; aarch64) tl_named=arm64 ;; *) tl_named=$tl_arch ;; esac
        tl_own=$(tr -d '[:space:]' <./body | awk '{ gsub(/},{/, "}\n{"); print }' | grep "\"architecture\":\"$tl_named\"" |
            grep -v '"os":"windows"' | sed -n 's/.*"digest":"\(sha256:[0-9a-f]*\)".*/\1/p' | head -n 1)
        if [ -z "$tl_own" ]; then
            cp ./body ./layers
        else
            curl --silent --fail --location --connect-timeout 10 --max-time 30 --max-filesize 4000000 --config - --output ./layers \
                --header "Accept: $tl_accept" -- "$tl_base${tl_url%/manifests/*}/manifests/$tl_own" <"$1" 2>/dev/null || continue
        fi
        grep -q '"layers"' ./layers || continue
        tr -d '[:space:]' <./layers | tr ',{}' '\n' | arch=$tl_arch awk -F : '
            $1 == "\"size\"" { sum += $2 }
            END { if (sum) printf ">size %s %.0f\n", ENVIRON["arch"], sum }'
    done
}

# bearer: gets a token and asks again.
bearer() {
    tl_realm=$(part realm)
    tl_query=
    for tl_name in service scope; do
        tl_value=$(part "$tl_name" | sed 's/ /%20/g')
        [ -z "$tl_value" ] || tl_query="${tl_query:+$tl_query&}$tl_name=$tl_value"
    done
    case $tl_realm in *\?*) tl_mark='&' ;; *) tl_mark='?' ;; esac
    netrc >./netrc
    fetch --netrc-file ./netrc -- "$tl_realm${tl_query:+$tl_mark$tl_query}" </dev/null
    rm -f ./netrc
    tl_token=$tl_code
    tl_line=$(line "$tl_at")
    printf '>realm %s\n>line %s\n>token %s\n' "$tl_at" "$tl_line" "$tl_code"
    [ "$tl_status" -eq 0 ] && [ "$tl_code" = 200 ] || return 0
    tr ',' '\n' <./body | sed -n 's/.*"\(access_\)\{0,1\}token" *: *"\([^"]*\)".*/header = "Authorization: Bearer \2"/p' | head -n 1 >./config
    manifest ./config
    rm -f ./config
}

basic() {
    tl_line=$(line "${tl_registry%:*}")
    printf '>line %s\n' "$tl_line"
    [ -n "$tl_line" ] || return 0
    # shellcheck disable=SC2086
    login $tl_line config >./config
    manifest ./config
    rm -f ./config
}

# check_manifest REGISTRY REPOSITORY REFERENCE USER: prints a frame with what came of it; USER is empty for the first line
# of the credentials file that fits.
check_manifest() {
    tl_credentials=$(credentials_file)
    ask "$1" "/v2/$2/manifests/$3" "$4"
}

# ask REGISTRY PATH USER: the same for any path of its API, with the lines of $tl_credentials.
ask() {
    # shellcheck disable=SC2034  # registry-login.sh reads tl_token
    tl_registry=$1 tl_url=$2 tl_wanted=$3 tl_line='' tl_token='' tl_code=''
    printf '@fact check\n>file %s\n' "$tl_credentials"
    if ! command -v curl >/dev/null 2>&1; then
        printf '>no-curl\n'
        return 0
    fi
    [ -n "$tl_enroot_conf" ] || find_enroot_conf
    tl_base=https://$tl_registry
    manifest /dev/null
    if [ "$tl_status" -ne 0 ]; then
        case $(enroot_setting ENROOT_ALLOW_HTTP no) in
        y | yes | true | 1 | Y | YES | TRUE)
            tl_base=http://$tl_registry
            manifest /dev/null
            ;;
        esac
    fi
    printf '>url %s\n>first %s\n' "$tl_base$tl_url" "$tl_code"
    tl_challenge=$(header '[Ww][Ww][Ww]-[Aa]uthenticate')
    if [ "$tl_status" -eq 0 ] && [ "$tl_code" = 401 ]; then
        case $tl_challenge in
        [Bb]earer*) bearer ;;
        *) basic ;;
        esac
    fi
    printf '>code %s\n>status %s\n' "$tl_code" "$tl_status"
    printf '>digest %s\n>type %s\n' "$(header '[Dd]ocker-[Cc]ontent-[Dd]igest')" "$(header '[Cc]ontent-[Tt]ype')"
    sed 's/^/!/' ./curl.err
}
