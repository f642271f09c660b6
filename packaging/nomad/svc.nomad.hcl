# The service with a standby, a database server, and runners.
#
#   nomad var put nomad/jobs/svc jwt_secret="$(openssl rand -base64 48)" password="$(openssl rand -base64 24)"
#   nomad job run svc.nomad.hcl
#
# Both allocations of "service" pass the liveness check. Only the serving one passes the readiness check, so Nomad and proxies find
# it under the service "svc". An update doesn't wait for readiness, because a standby is never ready.

variable "image" {
  type    = string
  default = "svc:latest"
}

variable "sqld_image" {
  type    = string
  default = "sqld:latest"
}

job "svc" {
  datacenters = ["dc1"]
  type        = "service"

  group "database" {
    count = 1

    network {
      mode = "host"
      port "sqld" { static = 8081 }
    }

    # On each client: client { host_volume "sqld" { path = "/srv/sqld" } }
    volume "data" {
      type   = "host"
      source = "sqld"
    }

    restart {
      attempts = 10
      interval = "5m"
      delay    = "1s"
      mode     = "delay"
    }

    task "sqld" {
      driver = "docker"

      config {
        image = var.sqld_image
        ports = ["sqld"]
        # More than four concurrent writing connections can stop its writes permanently.
        entrypoint   = ["sqld"]
        args         = ["--db-path", "/data", "--http-listen-addr", "${NOMAD_ADDR_sqld}", "--max-concurrent-connections", "4"]
        network_mode = "host"
      }

      volume_mount {
        volume      = "data"
        destination = "/data"
      }

      service {
        name     = "sqld"
        port     = "sqld"
        provider = "nomad"

        check {
          type     = "http"
          path     = "/health"
          interval = "5s"
          timeout  = "2s"
        }
      }

      resources {
        cpu    = 500
        memory = 512
      }
    }
  }

  group "service" {
    count = 2

    # Puts the standby on another machine than the serving allocation.
    constraint {
      operator = "distinct_hosts"
      value    = "true"
    }

    update {
      max_parallel     = 1
      health_check     = "task_states"
      min_healthy_time = "30s"
    }

    network {
      mode = "host"
      port "http" { static = 8080 }
    }

    volume "data" {
      type   = "host"
      source = "svc-data"
    }

    # Shared by both machines: NFS, CephFS, EFS ...
    volume "files" {
      type   = "host"
      source = "svc-files"
    }

    task "svc" {
      driver = "docker"
      # shutdown_grace (30 s) plus 15 s.
      kill_timeout = "60s"

      config {
        image        = var.image
        args         = ["serve", "--standby"]
        ports        = ["http"]
        network_mode = "host"
      }

      volume_mount {
        volume      = "data"
        destination = "/data"
      }

      volume_mount {
        volume      = "files"
        destination = "/files"
      }

      env {
        SVC_FILES_DIR             = "/files"
        SVC_SERVER__PORT          = "${NOMAD_PORT_http}"
        SVC_AUTH__JWT_SECRET_FILE = "${NOMAD_SECRETS_DIR}/jwt_secret"
        SVC_AUTH_PASSWORD_FILE    = "${NOMAD_SECRETS_DIR}/password"
      }

      template {
        destination = "${NOMAD_SECRETS_DIR}/jwt_secret"
        data        = "{{ with nomadVar \"nomad/jobs/svc\" }}{{ .jwt_secret }}{{ end }}"
      }

      template {
        destination = "${NOMAD_SECRETS_DIR}/password"
        data        = "{{ with nomadVar \"nomad/jobs/svc\" }}{{ .password }}{{ end }}"
      }

      template {
        destination = "local/database.env"
        env         = true
        data        = "{{ range nomadService \"sqld\" }}SVC_DATABASE__URL=http://{{ .Address }}:{{ .Port }}\n{{ end }}"
        change_mode = "restart"
      }

      service {
        name     = "svc"
        port     = "http"
        provider = "nomad"

        # Readiness: requests go here.
        check {
          name      = "ready"
          type      = "http"
          path      = "/readyz"
          interval  = "2s"
          timeout   = "5s"
          on_update = "ignore"
        }
      }

      service {
        name     = "svc-life"
        port     = "http"
        provider = "nomad"

        # Liveness: Nomad restarts a hanging service.
        check {
          name     = "alive"
          type     = "http"
          path     = "/livez"
          interval = "10s"
          timeout  = "5s"

          check_restart {
            limit = 6
            grace = "60s"
          }
        }
      }

      resources {
        cpu        = 1000
        memory     = 1024
        memory_max = 8192
      }
    }
  }

  # A group for each runner, with a separate name and token (svc ctl runner add).
  group "runner" {
    count = 1

    volume "data" {
      type   = "host"
      source = "svc-runner"
    }

    task "runner" {
      driver       = "docker"
      kill_timeout = "60s"

      config {
        # This image has no engines. Build an image with engines from it.
        image = var.image
        # The address of the proxy with the certificate, because a runner speaks HTTPS to other machines.
        args = ["runner", "--url", "https://svc.example.org", "--token-file", "${NOMAD_SECRETS_DIR}/token"]
      }

      volume_mount {
        volume      = "data"
        destination = "/data"
      }

      template {
        destination = "${NOMAD_SECRETS_DIR}/token"
        data        = "{{ with nomadVar \"nomad/jobs/svc/runner\" }}{{ .token }}{{ end }}"
      }

      resources {
        cpu        = 2000
        memory     = 2048
        memory_max = 16384
      }
    }
  }
}
