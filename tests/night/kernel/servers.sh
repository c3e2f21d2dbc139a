#!/bin/bash
# servers.sh - functions of real servers under load, by profil and by the profilers of their languages
# shellcheck source=tests/lib/lib.sh
. "$(dirname "$0")/../../lib/lib.sh"
. tests/lib/other_profilers.sh

# served REQUESTS COMMAND...: runs a server on $PORT, asks it, and ends it.
cat >"$dir/served" <<'END'
#!/bin/bash
setsid "${@:2}" &
server=$!
for ((i = 0; i < 300; i++)); do
	curl -sf -o /dev/null "http://127.0.0.1:$PORT/" && break
	kill -0 $server || exit 1
	sleep 0.1
done
curl -sf -o /dev/null "http://127.0.0.1:$PORT/?[1-$1]" || exit 1
kill -TERM -- -$server
wait $server
exit 0
END
chmod +x "$dir/served"
PORT=$(free_port)
export PORT

# Django, with its templates, behind gunicorn.
gunicorn_server() {
	cat >"$dir/app.py" <<'END'
from django.conf import settings
settings.configure(SECRET_KEY="none", ROOT_URLCONF=__name__, ALLOWED_HOSTS=["*"],
                   TEMPLATES=[{"BACKEND": "django.template.backends.django.DjangoTemplates"}])
import django
django.setup()
from django.core.wsgi import get_wsgi_application
from django.http import HttpResponse
from django.template import Context, Template
from django.urls import path

PAGE = Template("{% for row in rows %}<tr>{% for cell in row %}<td>{{ cell|floatformat:2 }}"
                "{{ cell|default:'none'|escape }}</td>{% endfor %}</tr>{% endfor %}")

def view(request):
    rows = [[i * j / 7 for j in range(20)] for i in range(40)]
    return HttpResponse(PAGE.render(Context({"rows": rows})))

urlpatterns = [path("", view)]
application = get_wsgi_application()
END
	cat >"$dir/gunicorn.py" <<'END'
import cProfile
import os
import time
profiler = cProfile.Profile(time.thread_time)

def post_fork(server, worker):
    if "SAMPLES" in os.environ:
        profiler.enable()

def worker_exit(server, worker):
    if "SAMPLES" in os.environ:
        profiler.disable()
        profiler.dump_stats(os.environ["SAMPLES"])
END
	SAMPLES=$dir/other same cprofile python "Django behind gunicorn" "$dir/served" 300 \
		gunicorn -w 1 -b "127.0.0.1:$PORT" --chdir "$dir" -c "$dir/gunicorn.py" app:application
}

# Express, which renders a text.
node_server() {
	online npm install --prefix "$dir" express marked@9 >"$dir/out" 2>&1
	cat >"$dir/server.js" <<'END'
const express = require("express"), { marked } = require("marked"), fs = require("fs");
const text = fs.readFileSync(__dirname + "/node_modules/express/Readme.md", "utf8");
const app = express();
app.get("/", (request, response) => response.send(marked.parse(text + text)));
app.listen(Number(process.env.PORT), "127.0.0.1");
process.on("SIGTERM", () => process.exit(0));
END
	same cpuprofile node Express "$dir/served" 400 node --no-turbo-inlining --cpu-prof --cpu-prof-dir="$dir" \
		--cpu-prof-name=other "$dir/server.js"
}

# Twig, which compiles its template at each request, behind php-fpm and nginx.
php_server() {
	local fpm

	fpm=$(free_port)
	cat >"$dir/index.php" <<'END'
<?php
require '/usr/share/php/Twig/autoload.php';
$row = "{% for row in rows %}<tr>{% for cell in row %}<td>{{ cell|upper|e }}</td>{% endfor %}</tr>{% endfor %}\n";
$loader = new \Twig\Loader\ArrayLoader(['page' => str_repeat($row, 100)]);
$twig = new \Twig\Environment($loader, ['cache' => false]);
echo $twig->render('page', ['rows' => [['one', 'two'], ['three', 'four']]]);
END
	cat >"$dir/nginx.conf" <<END
daemon off;
pid $dir/nginx.pid;
error_log stderr;
user root;
events { }
http {
	access_log off;
	client_body_temp_path $dir/body;
	fastcgi_temp_path $dir/fastcgi;
	proxy_temp_path $dir/proxy;
	scgi_temp_path $dir/scgi;
	uwsgi_temp_path $dir/uwsgi;
	server {
		listen 127.0.0.1:$PORT;
		location / {
			include /etc/nginx/fastcgi_params;
			fastcgi_param SCRIPT_FILENAME $dir/index.php;
			fastcgi_pass 127.0.0.1:$fpm;
		}
	}
}
END
	printf '%s\n' '[global]' 'error_log = /dev/stderr' '[www]' 'user = root' "listen = 127.0.0.1:$fpm" \
		'pm = static' 'pm.max_children = 1' 'clear_env = no' >"$dir/fpm.conf"
	XDEBUG_MODE=profile same xdebug php "Twig behind php-fpm and nginx" "$dir/served" 12 \
		sh -c "nginx -c $dir/nginx.conf & exec php-fpm8.2 -F -R -y $dir/fpm.conf \"\$@\"" fpm \
		-d xdebug.output_dir="$dir" -d xdebug.profiler_output_name=other -d xdebug.profiler_append=1 \
		-d xdebug.use_compression=0
}

# RDoc's conversion of a text, as a Rack application behind Puma.
ruby_server() {
	cat >"$dir/config.ru" <<'END'
require "rdoc"
require ENV["SAMPLER"] if ENV["SAMPLES"]
TEXT = "= Title\n\nA *bold* +word+ and _another_ one, and a {link}[https://example.org].\n\n* item\n* item\n\n" * 40
run lambda { |env|
  html = RDoc::Markup::ToHtml.new(RDoc::Options.new).convert(TEXT)
  [200, { "Content-Type" => "text/html" }, [html]]
}
END
	SAMPLER=$(ruby_sampler) SAMPLES=$dir/other same rows ruby "RDoc behind Puma" "$dir/served" 300 \
		puma -q -e production -t 1:1 -b "tcp://127.0.0.1:$PORT" "$dir/config.ru"
}

daemon_start
gunicorn_server
node_server
php_server
ruby_server
finish
