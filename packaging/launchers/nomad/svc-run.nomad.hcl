# Does one run for each dispatch: nomad job run svc-run.nomad.hcl
#
# The token's file is on a file system that the service and the clients of Nomad share, at the same path. Runs as the
# user of the service, who alone can read it.
job "svc-run" {
  datacenters = ["dc1"]
  type        = "batch"

  parameterized {
    payload       = "forbidden"
    meta_required = ["url", "token_file"]
  }

  group "run" {
    restart { attempts = 0 }
    reschedule { attempts = 0 }

    task "runner" {
      driver       = "raw_exec"
      user         = "svc"
      kill_timeout = "30s"

      config {
        command = "svc"
        args    = ["runner", "--once", "-c", "/etc/svc/runner.yaml"]
      }

      env {
        SVC_RUNNER_URL        = "${NOMAD_META_url}"
        SVC_RUNNER_TOKEN_FILE = "${NOMAD_META_token_file}"
      }

      # A dispatch can't change them. Register a job for each size, and name it in the command of its launcher.
      resources {
        cpu    = 1000
        memory = 2048
      }
    }
  }
}
